"""JSON Schema (draft 2020-12) of the wire types, as other programs read it.

Decides how a struct is said in the standard's words. msgspec gives the shapes and ranges; here its Python patterns
become those of ECMA 262, single values become `const`, and answers are told from requests: a member of a request that
has a default may be left out, a member of an answer that has one is always there. What a struct's types do not say
(which fields go together, what the served model can do) is not known here.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
COMPONENT_REFERENCE = "#/components/schemas/{name}"
_DEFINITION_REFERENCE = "#/$defs/{name}"

Schema = dict[str, Any]


def request_components(kinds: Sequence[type[msgspec.Struct]]) -> dict[str, Schema]:
    """Returns the schemas of request types and of all that they hold, by name, for an OpenAPI document."""
    return _components(kinds, COMPONENT_REFERENCE, is_answer=False)


def answer_components(kinds: Sequence[type[msgspec.Struct]]) -> dict[str, Schema]:
    """The same for what the server sends."""
    return _components(kinds, COMPONENT_REFERENCE, is_answer=True)


def answer_schema(kind: type[msgspec.Struct], identifier: str) -> Schema:
    """Returns one schema document for an answer, complete in itself. `identifier` is its `$id`."""
    definitions = _components([kind], _DEFINITION_REFERENCE, is_answer=True)
    top = definitions.pop(kind.__name__)
    return {"$schema": DIALECT, "$id": identifier, **top, "$defs": dict(sorted(definitions.items()))}


def closed(schema: Schema) -> Schema:
    """Returns a copy in which no object has members beside those it names: stricter than what callers may rely on."""
    copy = {key: _apply(closed, value) for key, value in schema.items()}
    if copy.get("type") == "object" and "properties" in copy:
        copy.setdefault("additionalProperties", False)
    return copy


def _apply(change: Callable[[Schema], Schema], node: object) -> object:
    """Applies `change` to the objects of a JSON value, wherever they are."""
    if isinstance(node, list):
        return [_apply(change, item) for item in node]
    return change(node) if isinstance(node, dict) else node


def _components(kinds: Sequence[type[msgspec.Struct]], reference: str, *, is_answer: bool) -> dict[str, Schema]:
    _, found = msgspec.json.schema_components(kinds, ref_template=reference)
    return {name: _translate(schema, is_answer=is_answer) for name, schema in found.items()}


def _translate(node: Schema, *, is_answer: bool) -> Schema:
    schema: Schema = {key: _apply(partial(_translate, is_answer=is_answer), value) for key, value in node.items()}
    if isinstance(schema.get("enum"), list) and len(schema["enum"]) == 1:
        schema["const"] = schema.pop("enum")[0]
    if isinstance(schema.get("pattern"), str):
        schema["pattern"] = schema["pattern"].replace(r"\Z", "$")
    if isinstance(schema.get("description"), str):
        schema["description"] = " ".join(schema["description"].split())
    if isinstance(schema.get("properties"), dict):
        _settle_members(schema, is_answer=is_answer)
    return schema


def _settle_members(schema: Schema, *, is_answer: bool) -> None:
    """Absent and null are the same in a request, so a default of null is not worth its line; answers leave out only
    what has no default at all.
    """
    required = list(schema.get("required", ()))
    for name, member in schema["properties"].items():
        if "default" not in member:
            continue
        if is_answer:
            del member["default"]
            required.append(name)
        elif member["default"] is None:
            del member["default"]
    order = list(schema["properties"])
    schema.pop("required", None)
    if required:
        schema["required"] = sorted(required, key=order.index)
