"""The strings that a schema allows, as an expression over raw text; and how a reader takes raw text for other types.

A string that stands for itself, without quotes, is one lexeme: patterns, lengths and lists of constants become regular
expressions. What a schema says of other types has no bearing on it.
"""

from collections.abc import Mapping
from typing import Any

from tidegate.grammar.composite.notation_schema import NotationSchema, check_depth, types_of
from tidegate.grammar.lark.lark_text import ANYTHING, any_of, regex
from tidegate.grammar.patterns.ecma_pattern import translate
from tidegate.grammar.patterns.search_pattern import whole_pattern
from tidegate.grammar.refusal import unsupported
from tidegate.grammar.schema.formats import LENGTHS, OF_BACKEND, PATTERNS, REFUSED_FORMATS
from tidegate.grammar.schema.schema_support import REFUSED, check_keywords

MAX_LOOKS = 200
"""As many subschemas as the reader of such values looks at for the types of one."""

_ALL = frozenset(("null", "boolean", "integer", "number", "array", "object", "string"))
_OTHER_WORDS = ("not", "if", "then", "else")
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HEX = "[0-9A-Fa-f]"
_PLAIN = {
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "uuid": f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
}


class RawText:
    """Expressions for the strings of one schema document."""

    def __init__(self, schema: NotationSchema) -> None:
        self._schema = schema

    def strings(self, node: Any, path: str, depth: int = 0) -> str | None:
        """Returns the lexeme of the strings that a schema allows, None for none. Raises Refused."""
        check_depth(depth, path)
        node, path = self._schema.followed(node, path)
        if isinstance(node, bool):
            return ANYTHING if node else None
        check_keywords(node, path)
        if "string" not in types_of(node):
            return None
        clauses = [self._constants(node), *self._patterns(node, path), *self._parts(node, path, depth)]
        if any(clause is None for clause in clauses):
            return None
        said = [clause for clause in clauses if clause is not None and clause != ANYTHING]
        return " & ".join(f"({clause})" for clause in said) or ANYTHING

    def _constants(self, node: dict[str, Any]) -> str | None:
        lists = [[node["const"]]] if "const" in node else []
        lists += [node["enum"]] if "enum" in node else []
        if not lists:
            return ANYTHING
        texts = [text for text in lists[0] if isinstance(text, str) and all(text in values for values in lists)]
        return f"/{any_of(texts)}/" if texts else None

    def _patterns(self, node: dict[str, Any], path: str) -> list[str]:
        found = []
        if "pattern" in node:
            where = f"{path}/pattern"
            found.append(regex(whole_pattern(translate(node["pattern"], where), where)))
        if "minLength" in node or "maxLength" in node:
            most = int(node["maxLength"]) if "maxLength" in node else ""
            found.append(f"/(?s:.{{{int(node.get('minLength', 0))},{most}}})/")
        name = node.get("format")
        if name in _PLAIN:
            found.append(regex(_PLAIN[name]))
        elif name in PATTERNS:
            found.append(regex(whole_pattern(PATTERNS[name], path)))
            found += [f"/(?s:.{{0,{LENGTHS[name]}}})/"] if name in LENGTHS else []
        elif name in OF_BACKEND or name in REFUSED_FORMATS:
            raise unsupported(f"the format {name} is not enforced in raw text", f"{path}/format")
        return found

    def _parts(self, node: dict[str, Any], path: str, depth: int) -> list[str | None]:
        for keyword in (*_OTHER_WORDS, *REFUSED):
            if keyword in node:
                raise unsupported(f"{keyword} is not enforced in raw text", f"{path}/{keyword}")
        found: list[str | None] = []
        if "$ref" in node:
            found.append(self.strings(*self._schema.document.resolve(node, node["$ref"], path), depth + 1))
        for i, part in enumerate(node.get("allOf", ())):
            found.append(self.strings(part, f"{path}/allOf/{i}", depth + 1))
        unions = [keyword for keyword in ("anyOf", "oneOf") if keyword in node]
        return found + [self._union(node[keyword], f"{path}/{keyword}", depth) for keyword in unions]

    def _union(self, parts: list[Any], path: str, depth: int) -> str | None:
        options = [self.strings(part, f"{path}/{i}", depth + 1) for i, part in enumerate(parts)]
        told = [(part, option) for part, option in zip(parts, options, strict=True) if option is not None]
        if path.endswith("/oneOf"):
            self._schema.check_exclusive([part for part, _ in told], path)
        if any(option == ANYTHING for _, option in told):
            return ANYTHING
        return " | ".join(f"({option})" for _, option in told) or None


def read_types(root: Any, node: Any) -> frozenset[str]:
    """Returns the types that a reader of raw text sees in a parameter's schema, found as the parsers find them.

    It decides what text becomes, so this must see no more and no less: a test holds both against each other.
    """
    types: set[str] = set()
    pending: list[Any] = [node]
    looks = MAX_LOOKS - 1
    while pending and looks > 0:
        looks -= 1
        schema = _read_reference(root, pending.pop())
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
    return frozenset(types) or _ALL


def _read_reference(root: Any, schema: Any) -> Any:
    for _ in range(16):
        if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
            return schema
        path: str = schema["$ref"]
        if path != "#" and not path.startswith("#/"):
            return None
        schema = root
        for part in path.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _type_of(value: object) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
