"""`propertyNames` and the `unevaluated` keywords, in terms of named, matching and further properties or items."""

import re
from typing import Any

from tidegate.grammar.patterns.ecma_pattern import translate
from tidegate.grammar.refusal import unsupported
from tidegate.grammar.schema.schema_document import SchemaDocument
from tidegate.grammar.schema.schema_support import REMARKS

_APPLICATORS = ("allOf", "$ref", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies")
_NAME_KEYWORDS = frozenset(("pattern", "enum", "const", "minLength", "maxLength", "type", "format", *REMARKS))


_MATCH_ALL = frozenset(("", "^", ".*", "^.*", "(?:)"))


def everywhere(out: dict[str, Any], more: list[Any]) -> None:
    """A pattern that every name matches is a rule for every property, and leaves no further ones."""
    patterns = out.get("patternProperties", {})
    found = [pattern for pattern in patterns if pattern.replace(r"[^\n\r\u2028\u2029]", ".") in _MATCH_ALL]
    more += [{"additionalProperties": patterns.pop(pattern)} for pattern in found]
    if found:
        out.pop("additionalProperties", None)
    if found and not patterns:
        del out["patternProperties"]


def lower_names(names: Any, out: dict[str, Any], path: str) -> None:
    """Rewrites `out`'s properties so that only names that the schema `names` allows are left. Raises Refused."""
    where = f"{path}/propertyNames"
    if names is True or names == {}:
        return
    if names is False:
        out["properties"] = dict.fromkeys(out.get("properties", {}), False)
        out["additionalProperties"] = False
        out.pop("patternProperties", None)
        return
    if set(names) - REMARKS == {"not"}:
        _lower_forbidden(names["not"], out, where)
        return
    if names.get("type", "string") != "string" or set(names) - _NAME_KEYWORDS or "format" in names:
        raise unsupported("propertyNames, except by pattern, list or length", where)
    if "patternProperties" in out:
        raise unsupported("propertyNames beside patternProperties", where)
    _keep_fitting(names, out, where)


def _keep_fitting(names: dict[str, Any], out: dict[str, Any], path: str) -> None:
    listed = _listed(names)
    further = out.get("additionalProperties", {})
    properties = {name: part if _fits(name, names, path) else False for name, part in out.get("properties", {}).items()}
    pattern = _name_pattern(names, path) if listed is None else None
    if listed is not None:
        new = [name for name in listed if name not in properties and _fits(name, names, path)]
        properties |= dict.fromkeys(new, further)
    elif pattern is not None and further is not False:
        out["patternProperties"] = {pattern: further}
    if listed is not None or pattern is not None:
        out["additionalProperties"] = False
    if properties:
        out["properties"] = properties


def _lower_forbidden(names: Any, out: dict[str, Any], path: str) -> None:
    listed = _listed(names) if isinstance(names, dict) and set(names) - REMARKS <= {"enum", "const"} else None
    if listed is None:
        raise unsupported("propertyNames, except by pattern, list or length", path)
    out["properties"] = {**out.get("properties", {}), **dict.fromkeys(listed, False)}


def _listed(names: dict[str, Any]) -> list[str] | None:
    if "const" in names:
        return [names["const"]] if isinstance(names["const"], str) else []
    if "enum" in names:
        return [name for name in names["enum"] if isinstance(name, str)]
    return None


def _name_pattern(names: dict[str, Any], path: str) -> str | None:
    has_length = "minLength" in names or "maxLength" in names
    if has_length and "pattern" in names:
        raise unsupported("propertyNames by pattern and length at once", path)
    if has_length:
        most = int(names["maxLength"]) if "maxLength" in names else ""
        return f"^(?s:.){{{int(names.get('minLength', 0))},{most}}}$"
    return translate(names["pattern"], f"{path}/pattern") if "pattern" in names else None


def _fits(name: str, names: dict[str, Any], path: str) -> bool:
    listed = _listed(names)
    if listed is not None and name not in listed:
        return False
    if not names.get("minLength", 0) <= len(name) <= names.get("maxLength", len(name)):
        return False
    if "pattern" not in names:
        return True
    try:
        return re.search(names["pattern"].replace("$", r"\Z"), name, re.ASCII) is not None
    except re.error as error:
        raise unsupported("propertyNames by a pattern that listed names cannot be checked with", path) from error


def lower_evaluation(schema: dict[str, Any], keyword: str, document: SchemaDocument, path: str) -> Any:
    """Returns a schema that stands for an `unevaluated` keyword, or None where it says nothing. Raises Refused."""
    value = schema[keyword]
    if value is True or value == {}:
        return None
    where = f"{path}/{keyword}"
    parts = _sure_parts(schema, document, where)
    if keyword == "unevaluatedItems":
        return _items(parts, value, where)
    properties: dict[str, Any] = {}
    patterns: dict[str, Any] = {}
    for part in parts:
        if "additionalProperties" in part or (part is not schema and keyword in part):
            return None
        properties |= dict.fromkeys(part.get("properties", {}), True)
        patterns |= dict.fromkeys(part.get("patternProperties", {}), True)
    return {"properties": properties, "patternProperties": patterns, "additionalProperties": value}


def _items(parts: list[dict[str, Any]], value: Any, path: str) -> Any:
    longest: list[Any] = []
    for number, part in enumerate(parts):
        if "contains" in part:
            raise unsupported("unevaluatedItems beside contains", path)
        items = part.get("items")
        if (items is not None and not isinstance(items, list)) or "additionalItems" in part:
            return None
        if number and "unevaluatedItems" in part:
            return None
        prefix = items if isinstance(items, list) else part.get("prefixItems", [])
        longest = max(longest, prefix, key=len)
    return {"prefixItems": [True] * len(longest), "items": value} if longest else {"items": value}


def _sure_parts(schema: dict[str, Any], document: SchemaDocument, path: str) -> list[dict[str, Any]]:
    """Returns the schema and all that holds for the same value without condition."""
    found: list[dict[str, Any]] = []
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, dict) or any(node is other for other in found):
            continue
        found.append(node)
        if any(keyword in node for keyword in _APPLICATORS[2:]) or "$dynamicRef" in node:
            raise unsupported("unevaluated properties or items beside conditional parts", path)
        waiting += node.get("allOf", ())
        if "$ref" in node:
            waiting.append(document.resolve(node, node["$ref"], path)[0])
    return found
