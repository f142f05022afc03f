"""JSON in which certain texts never come: what a reader takes for the end of a value must not stand in its strings.

Works on lowered schemas. Between tokens JSON holds no such text; so strings and names are kept from it, everywhere,
and where a schema leaves open what may come, that is JSON without these texts too.
"""

import json
from typing import Any

from tidegate.grammar.lark.lark_text import quoted
from tidegate.grammar.refusal import unsupported

_SAFE = "unmarked"
_NOT_INSIDE = frozenset('"\\')
_OUTSIDE = frozenset("[]{},:+-.0123456789 \t\r")


def keep_unmarked(schema: dict[str, Any], texts: tuple[str, ...], path: str) -> dict[str, Any]:
    """Returns the schema of those of its values whose JSON holds none of `texts`. Raises Refused.

    Refused where a constant holds one of them, or where a text cannot be kept out.
    """
    # A line break is never written inside a string, and what follows it between tokens is JSON.
    relevant = [text for text in texts if "\n" not in text]
    if not relevant:
        return schema
    if any(_NOT_INSIDE & set(text) or text[0] in _OUTSIDE or text[0].isalpha() for text in relevant):
        raise unsupported("values of this type beside such an end marker", path)
    pattern = _avoiding(relevant)
    safe = {**_shallow(pattern), "items": _reference(), "patternProperties": {pattern: _reference()}}
    writer = _Writer(pattern, relevant, path)
    definitions = {name: writer.mark(part) for name, part in schema.get("$defs", {}).items()}
    root: dict[str, Any] = writer.mark({key: part for key, part in schema.items() if key != "$defs"})
    return {**root, "$defs": {**definitions, _SAFE: safe}}


class _Writer:
    def __init__(self, pattern: str, texts: list[str], path: str) -> None:
        self._pattern = pattern
        self._texts = texts
        self._path = path

    def mark(self, node: Any) -> Any:
        if node is True or node == {}:
            return _reference()
        if not isinstance(node, dict) or "$ref" in node:
            return node
        self._check_constants(node)
        if not {"string", "array", "object", "any"} & _types(node):
            return node
        return self._marked(node)

    def _marked(self, node: dict[str, Any]) -> dict[str, Any]:
        out = dict(node)
        for keyword in ("properties", "patternProperties"):
            if keyword in node:
                out[keyword] = {name: self.mark(part) for name, part in node[keyword].items()}
        for keyword in ("prefixItems", "anyOf", "allOf"):
            if keyword in node:
                out[keyword] = [self.mark(part) for part in node[keyword]]
        # A part of a conjunction that says nothing of items or members leaves them to the other parts.
        for keyword in ("items", "additionalProperties"):
            if keyword in node:
                out[keyword] = self.mark(node[keyword])
            elif not {"anyOf", "allOf"} & node.keys():
                out[keyword] = _reference()
        out["allOf"] = [*out.get("allOf", ()), _shallow(self._pattern)]
        return out

    def _check_constants(self, node: dict[str, Any]) -> None:
        for value in [*node.get("enum", ()), *([node["const"]] if "const" in node else [])]:
            written = json.dumps(value, ensure_ascii=False)
            if any(text in written for text in self._texts):
                raise unsupported("a constant that holds the end marker of a value", self._path)


def _types(node: dict[str, Any]) -> set[str]:
    said = node.get("type", "any")
    return {said} if isinstance(said, str) else set(said)


def _reference() -> dict[str, Any]:
    return {"$ref": f"#/$defs/{_SAFE}"}


def _shallow(pattern: str) -> dict[str, Any]:
    """Strings and names without the texts; nothing about what is inside."""
    return {"pattern": pattern, "patternProperties": {pattern: {}}, "additionalProperties": False}


def _avoiding(texts: list[str]) -> str:
    """Returns a pattern for strings without these texts.

    Exact where the first character of each comes nowhere else in it, and they share it; otherwise that character, or
    any of them, does not come at all.
    """
    firsts = {text[0] for text in texts}
    first = f"\\x{{{ord(texts[0][0]):x}}}"
    if len(firsts) > 1 or any(text[0] in text[1:] for text in texts) or any(len(text) == 1 for text in texts):
        return "^[^" + "".join(sorted(map(quoted, firsts))) + "]*$"
    tails = [text[1:] for text in texts if not any(text != other and text.startswith(other) for other in texts)]
    return f"^[^{first}]*(?:{first}{_not_beginning(tails, first)})*$"


def _not_beginning(tails: list[str], first: str) -> str:
    """Returns a pattern for text without `first` that begins with none of `tails`, none of which begins another."""
    heads = sorted({tail[0] for tail in tails})
    branches = [f"[^{first}" + "".join(f"\\x{{{ord(head):x}}}" for head in heads) + f"][^{first}]*"]
    for head in heads:
        rest = [tail[1:] for tail in tails if tail[0] == head]
        if "" not in rest:
            branches.append(quoted(head) + _not_beginning(rest, first))
    return "(?:" + "|".join(branches) + ")?"
