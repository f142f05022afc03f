"""A value that is valid under a JSON schema, drawn from the words of a prompt where they fit.

It knows the keywords that client libraries write: types, `enum`, `const`, `$ref`, `anyOf`, `oneOf`, `allOf`, bounds of
numbers, lengths and items. What a prompt asks for in numbers and quoted words comes back in the value, so that a test
such as "call it with 3" gets its 3.
"""

import re
from collections.abc import Mapping
from typing import Any

NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.]*\w)")
QUOTED = re.compile(r"[\"“'‘]([^\"“”'‘’]+)[\"”'’]")
FALLBACK_TEXT = "tide"
LARGEST = 1_000_000
DEEPEST = 16
"""A schema that refers to itself is followed this far; optional members are left out below half of it."""


def example_value(schema: Mapping[str, Any] | bool, prompt: str = "") -> Any:
    """Returns a value for a schema whose references are local (`#/$defs/...`).

    Raises ValueError for a schema that needs more than DEEPEST levels, and KeyError for a reference to nothing.
    """
    return _Writer(schema if isinstance(schema, Mapping) else {}, prompt).value(schema, 0)


def quoted_words(prompt: str) -> list[str]:
    return [word.strip() for word in QUOTED.findall(prompt) if word.strip()]


class _Writer:
    def __init__(self, root: Mapping[str, Any], prompt: str) -> None:
        self._root = root
        self._numbers = [int(number) for number in NUMBER.findall(prompt)]
        self._words = quoted_words(prompt)

    def value(self, schema: Mapping[str, Any] | bool, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("the schema has no value of a reasonable depth")
        if isinstance(schema, bool):
            return FALLBACK_TEXT
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.value(_first_not_null(schema[several]), depth + 1)
        return self._of_type(schema, depth)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follows `$ref` and lays the members of `allOf` over each other."""
        while "$ref" in schema:
            target: Any = self._root
            for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
                target = target[step] if step else target
            schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
        for part in schema.get("allOf", ()):
            schema = {**self._resolved(part), **schema}
        return schema

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                count = max(int(schema.get("minItems", 0)), 1 if depth < DEEPEST / 2 else 0)
                return [self.value(schema.get("items", True), depth + 1) for _ in range(count)]
            case "integer" | "number":
                return self._number(schema)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._string(schema)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        members = schema.get("properties", {})
        wanted = members if depth < DEEPEST / 2 else {name: members[name] for name in required if name in members}
        return {name: self.value(member, depth + 1) for name, member in wanted.items()}

    def _number(self, schema: Mapping[str, Any]) -> int:
        """Returns the prompt's first number within the bounds; 1, or the whole number next to a bound, without one."""
        least = max(schema.get("minimum", -LARGEST), schema.get("exclusiveMinimum", -LARGEST - 1) + 1)
        most = min(schema.get("maximum", LARGEST), schema.get("exclusiveMaximum", LARGEST + 1) - 1)
        number = next((asked for asked in self._numbers if least <= asked <= most), None)
        if number is None:
            return int(min(max(1, least), most))
        self._numbers.remove(number)
        return number

    def _string(self, schema: Mapping[str, Any]) -> str:
        text = self._words.pop(0) if self._words else FALLBACK_TEXT
        shortest = int(schema.get("minLength", 0))
        return (text + "." * max(0, shortest - len(text)))[: schema.get("maxLength")]


def _first_not_null(schemas: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((schema for schema in schemas if schema.get("type") != "null"), schemas[0])
