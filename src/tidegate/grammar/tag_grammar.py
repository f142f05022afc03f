"""Structural tags as a composite: free text until a trigger, then one of the tags that begin with it."""

from tidegate.grammar.refusal import invalid
from tidegate.inference.grammar_parts import (
    AlternativesPart,
    CompositeSpec,
    FreePart,
    FreeUntilPart,
    JsonPart,
    Marker,
    RepeatPart,
    SeriesPart,
    TextPart,
    Trigger,
)
from tidegate.inference.grammar_spec import StructuralTag, StructuralTagSpec


def tag_grammar(spec: StructuralTagSpec) -> CompositeSpec:
    """Returns the composite. Raises Refused for tags and triggers that do not fit together."""
    _check(spec)
    triggers = []
    for trigger in spec.triggers:
        tags = [n for n, tag in enumerate(spec.tags) if _trigger_of(tag, spec.triggers) == trigger]
        then = AlternativesPart(tuple(_tag_part(spec.tags[n], n, trigger) for n in tags))
        triggers.append(Trigger((Marker(trigger),), then))
    free = FreePart(tuple(map(Marker, spec.triggers)))
    return CompositeSpec(SeriesPart((RepeatPart(FreeUntilPart(tuple(triggers))), free)))


def _tag_part(tag: StructuralTag, number: int, trigger: str) -> SeriesPart:
    value = JsonPart(tag.schema, f"/tags/{number}/schema")
    return SeriesPart((TextPart(tag.begin[len(trigger) :]), value, TextPart(tag.end)))


def _check(spec: StructuralTagSpec) -> None:
    if not spec.tags or not spec.triggers:
        raise invalid("structural tags need at least one tag and one trigger")
    if any(not trigger for trigger in spec.triggers) or len(set(spec.triggers)) != len(spec.triggers):
        raise invalid("triggers are not empty and differ from each other")
    for trigger in spec.triggers:
        if any(other != trigger and trigger in other for other in spec.triggers):
            raise invalid("no trigger may contain another one: the shorter would always come first")
    for n, tag in enumerate(spec.tags):
        if _trigger_of(tag, spec.triggers) is None:
            raise invalid("a tag begins with one of the triggers", f"/tags/{n}/begin")
    used = {_trigger_of(tag, spec.triggers) for tag in spec.tags}
    if len(used) != len(spec.triggers):
        raise invalid("every trigger begins at least one tag")


def _trigger_of(tag: StructuralTag, triggers: tuple[str, ...]) -> str | None:
    return next((trigger for trigger in triggers if tag.begin.startswith(trigger)), None)
