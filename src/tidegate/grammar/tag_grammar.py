"""Structural tags as a Lark grammar: free text until a trigger, then one of the tags that begin with it."""

import json

from tidegate.grammar.refusal import invalid
from tidegate.inference.grammar_spec import StructuralTag, StructuralTagSpec


def tag_grammar(spec: StructuralTagSpec, schemas: list[str]) -> str:
    """Returns Lark text; `schemas[i]` is the JSON text that the backend shall compile for tag i.

    A trigger is a lazy lexeme: text up to its first occurrence, which ends free text whatever else could match.
    Raises Refused for tags and triggers that do not fit together.
    """
    check_tags(spec)
    lines = ["start: (" + " | ".join(f"triggered_{i}" for i in range(len(spec.triggers))) + ")* FREE"]
    lines.append(r"FREE: /(.|\n)*/")
    for i, trigger in enumerate(spec.triggers):
        tags = [n for n, tag in enumerate(spec.tags) if trigger_of(tag, spec.triggers) == i]
        lines.append(f"triggered_{i}: trigger_{i} (" + " | ".join(f"tag_{n}" for n in tags) + ")")
        lines.append(f"trigger_{i}[lazy]: FREE {_literal(trigger)}")
        for n in tags:
            tag = spec.tags[n]
            rest = tag.begin[len(trigger) :]
            parts = [_literal(rest), f"%json {schemas[n]}", _literal(tag.end)]
            lines.append(f"tag_{n}: " + " ".join(part for part in parts if part))
    return "\n".join(lines)


def check_tags(spec: StructuralTagSpec) -> None:
    """Raises Refused for tags and triggers that do not fit together."""
    if not spec.tags or not spec.triggers:
        raise invalid("structural tags need at least one tag and one trigger")
    if any(not trigger for trigger in spec.triggers) or len(set(spec.triggers)) != len(spec.triggers):
        raise invalid("triggers are not empty and differ from each other")
    for trigger in spec.triggers:
        if any(other != trigger and trigger in other for other in spec.triggers):
            raise invalid("no trigger may contain another one: the shorter would always come first")
    for n, tag in enumerate(spec.tags):
        if trigger_of(tag, spec.triggers) is None:
            raise invalid("a tag begins with one of the triggers", f"/tags/{n}/begin")
    used = {trigger_of(tag, spec.triggers) for tag in spec.tags}
    if len(used) != len(spec.triggers):
        raise invalid("every trigger begins at least one tag")


def trigger_of(tag: StructuralTag, triggers: tuple[str, ...]) -> int | None:
    """Returns the number of the trigger that a tag begins with."""
    return next((i for i, trigger in enumerate(triggers) if tag.begin.startswith(trigger)), None)


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""
