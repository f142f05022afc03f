"""What each keyword of JSON Schema means here: enforced, only a remark, or refused. This is the published list.

A keyword that no draft knows is a remark, as the standard says. What is refused is refused whatever its value. Formats
have a file of their own, `formats.py`.
"""

from typing import Any

from tidegate.grammar.refusal import invalid

TYPES = ("null", "boolean", "object", "array", "string", "integer", "number")

ENFORCED = frozenset(
    [
        "$ref",
        "$defs",
        "definitions",
        "type",
        "const",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedProperties",
        "unevaluatedItems",
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
    ]
)
"""Enforced exactly, or refused for the values for which that is not possible."""

REMARKS = frozenset(
    [
        "$schema",
        "$id",
        "id",
        "$anchor",
        "$dynamicAnchor",
        "$comment",
        "$vocabulary",
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    ]
)

REFUSED = frozenset(("$dynamicRef", "$recursiveRef"))

_SCHEMA = frozenset(
    [
        "additionalProperties",
        "propertyNames",
        "additionalItems",
        "contains",
        "unevaluatedProperties",
        "unevaluatedItems",
        "not",
        "if",
        "then",
        "else",
    ]
)
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_COUNTS = frozenset(
    ["minProperties", "maxProperties", "minItems", "maxItems", "minContains", "maxContains", "minLength", "maxLength"]
)
_NUMBERS = frozenset(("minimum", "maximum", "multipleOf"))
_TEXTS = frozenset(("$ref", "pattern", "format", "$dynamicRef"))


def check_keywords(schema: dict[str, Any], path: str) -> None:
    """Raises Refused with `invalid_schema` for the first keyword whose value has not the right shape."""
    for keyword, value in schema.items():
        problem = _problem(keyword, value)
        if problem is not None:
            raise invalid(f"{keyword} {problem}", f"{path}/{keyword}")


def subschemas(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns the schemas directly inside one, with their paths below it. Data and unknown keywords hold none."""
    found: list[tuple[str, Any]] = []
    for keyword, value in schema.items():
        if keyword in _SCHEMA or (keyword == "items" and is_schema(value)):
            found.append((f"/{keyword}", value))
        elif (keyword in _SCHEMA_LISTS or keyword == "items") and isinstance(value, list):
            found += [(f"/{keyword}/{i}", part) for i, part in enumerate(value)]
        elif (keyword in _SCHEMA_MAPS or keyword == "dependencies") and isinstance(value, dict):
            found += [(f"/{keyword}/{escape(name)}", part) for name, part in value.items()]
    return [(path, part) for path, part in found if isinstance(part, dict)]


def escape(name: str) -> str:
    """Returns a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def is_schema(value: object) -> bool:
    return isinstance(value, dict | bool)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _problem(keyword: str, value: Any) -> str | None:
    if keyword in _SCHEMA:
        return None if is_schema(value) else "must be a schema"
    if keyword in _SCHEMA_LISTS:
        is_right = isinstance(value, list) and value != [] and all(map(is_schema, value))
        return None if is_right else "must be a list of schemas, and not empty"
    if keyword in _SCHEMA_MAPS:
        is_right = isinstance(value, dict) and all(map(is_schema, value.values()))
        return None if is_right else "must be an object of schemas"
    if keyword in _COUNTS:
        return None if is_number(value) and value >= 0 and value == int(value) else "must be a count"
    if keyword in _NUMBERS:
        return None if is_number(value) and (keyword != "multipleOf" or value > 0) else "must be a number"
    if keyword in _TEXTS:
        return None if isinstance(value, str) else "must be a string"
    return _problem_of_others(keyword, value)


def _problem_of_others(keyword: str, value: Any) -> str | None:
    match keyword:
        case "type":
            names = value if isinstance(value, list) else [value]
            is_right = names != [] and all(isinstance(name, str) and name in TYPES for name in names)
            return None if is_right else "names a type that does not exist"
        case "enum":
            return None if isinstance(value, list) and value else "must be a list, and not empty"
        case "required":
            is_right = isinstance(value, bool) or _are_texts(value)
            return None if is_right else "must be a list of names"
        case "uniqueItems":
            return None if isinstance(value, bool) else "must be true or false"
        case "exclusiveMinimum" | "exclusiveMaximum":
            return None if is_number(value) or isinstance(value, bool) else "must be a number"
        case "items":
            is_right = is_schema(value) or (isinstance(value, list) and all(map(is_schema, value)))
            return None if is_right else "must be a schema"
        case "dependentRequired":
            is_right = isinstance(value, dict) and all(map(_are_texts, value.values()))
            return None if is_right else "must be an object of lists of names"
        case "dependencies":
            is_right = isinstance(value, dict) and all(is_schema(v) or _are_texts(v) for v in value.values())
            return None if is_right else "must be an object of schemas and lists of names"
    return None


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
