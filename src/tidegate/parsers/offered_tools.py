"""The tools of a request as parsers need them: their names, and the types of their parameters.

Decides what JSON a value becomes that a model wrote as plain text (the XML-like formats): by the tool's own schema.
Resolves `$ref` inside the schema, looks into `anyOf`, `oneOf`, `allOf`, `enum` and `const`; never changes the schema.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.parsers.json_text import is_json, is_number, quote

MAX_LOOKS = 200
"""Subschemas looked at for the type of one parameter; what is not found by then does not count."""

_ANY = frozenset(("null", "boolean", "integer", "number", "array", "object", "string"))
_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false"}


class ToolSchema:
    """The parameters of one tool, by its JSON Schema. Any: a schema is JSON of any shape."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema or {}
        self._types: dict[str, frozenset[str]] = {}

    def types_of(self, key: str) -> frozenset[str]:
        """Returns the JSON types that the parameter `key` may have; all of them where the schema does not say."""
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = self._find_types(key)
        return found

    def is_text(self, key: str) -> bool:
        """Whether the parameter is a string and nothing else, so that its text can be passed on as it arrives."""
        return self.types_of(key) == {"string"}

    def to_json(self, key: str, text: str) -> str:
        """Returns the JSON of a parameter that the model wrote as `text`: its own characters where they are JSON."""
        return to_json(self.types_of(key), text)

    def _find_types(self, key: str) -> frozenset[str]:
        looks = [MAX_LOOKS]
        properties: list[Any] = []
        pending: list[Any] = [self._schema]
        while pending and looks[0] > 0:
            looks[0] -= 1
            schema = self._resolve(pending.pop())
            if not isinstance(schema, Mapping):
                continue
            own = schema.get("properties")
            if isinstance(own, Mapping) and key in own:
                properties.append(own[key])
            for word in ("allOf", "anyOf", "oneOf"):
                pending += _list(schema.get(word))
        types = frozenset().union(*(self._types_in(schema, looks) for schema in properties))
        return types or _ANY

    def _types_in(self, schema: object, looks: list[int]) -> frozenset[str]:
        types: set[str] = set()
        pending: list[object] = [schema]
        while pending and looks[0] > 0:
            looks[0] -= 1
            schema = self._resolve(pending.pop())
            if not isinstance(schema, Mapping):
                continue
            said = schema.get("type")
            values = [*_list(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
            if isinstance(said, str):
                types.add(said)
            elif isinstance(said, list):
                types.update(word for word in said if isinstance(word, str))
            elif values:
                types.update(map(_type_of, values))
            else:
                for word in ("anyOf", "oneOf", "allOf"):
                    pending += _list(schema.get(word))
        return frozenset(types)

    def _resolve(self, schema: object) -> object:
        """Follows `$ref` inside this schema; what cannot be found says nothing."""
        for _ in range(16):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                return schema
            path: str = schema["$ref"]
            if path != "#" and not path.startswith("#/"):
                return None
            schema = self._schema
            for part in path.split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                schema = schema.get(name) if isinstance(schema, Mapping) else None
        return None


class OfferedTools:
    """Tool name to its schema. `custom_names`: those whose calls carry plain text, as an object with one string."""

    def __init__(
        self, tools: Iterable[tuple[str, Mapping[str, Any] | None]] = (), custom_names: Iterable[str] = ()
    ) -> None:
        self._schemas = {name: ToolSchema(schema) for name, schema in tools}
        self.custom_names = frozenset(custom_names)

    def __len__(self) -> int:
        return len(self._schemas)

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def get(self, name: str) -> ToolSchema | None:
        """Returns the schema of an offered tool."""
        return self._schemas.get(name)


def to_json(types: frozenset[str], text: str) -> str:
    """Returns `text` as JSON of one of `types`, the narrower before string; what fits none is a string."""
    bare = text.strip(" \t\r\n")
    if "null" in types and bare in ("null", "None"):
        return "null"
    if "boolean" in types and bare in _WORDS:
        return _WORDS[bare]
    if ("integer" in types or "number" in types) and is_number(bare):
        return bare
    kind = {"{": "object", "[": "array"}.get(bare[:1])
    if kind in types and is_json(bare):
        return bare
    return quote(text)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _type_of(value: object) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
