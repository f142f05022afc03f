"""Values of members as literals: Python's, or those of a notation with marks around strings and bare keys."""

import re
from collections.abc import Callable
from typing import Any

from tidegate.grammar.composite.notation_schema import Member, NotationSchema, is_free, keywords_of, types_of
from tidegate.grammar.composite.raw_text import RawText
from tidegate.grammar.json_text import UNWRITABLE, write_json
from tidegate.grammar.lark.embedded_lark import marked_sentence
from tidegate.grammar.lark.lark_text import ANYTHING, LarkText, ended, json_rule, quoted, spell
from tidegate.grammar.lark.marker_states import MarkerStates
from tidegate.grammar.refusal import invalid, unsupported
from tidegate.grammar.schema.disjoint import type_name
from tidegate.grammar.schema.lowering import lower_part
from tidegate.grammar.schema.schema_support import check_keywords, is_number, is_schema
from tidegate.inference.grammar_parts import LiteralValues, TextPart, TokenPart, Written

_ARRAY = frozenset(("items", "prefixItems", "minItems", "maxItems"))
_OBJECT = frozenset(("properties", "required", "additionalProperties", "minProperties", "maxProperties"))
_OF_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_OF_SCALARS = _OF_NUMBERS | {"pattern", "format", "minLength", "maxLength"}
_KNOWN = frozenset(("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")) | _ARRAY | _OBJECT | _OF_SCALARS


class LiteralMembers:
    """Writes values of one object's members. `say` returns the expression of fixed text."""

    def __init__(
        self, text: LarkText, schema: NotationSchema, values: LiteralValues, say: Callable[[Written], str]
    ) -> None:
        self._text = text
        self._schema = schema
        self._raw = RawText(schema)
        self._values = values
        self._say = say
        self._rules: dict[int, str] = {}
        self._waiting: list[tuple[str, Any, str]] = []
        self._any: str | None = None
        is_bare = values.text_mark is not None
        self.key_pattern = r"[^,:{}\[\]<\s]+(?:[ \t]+[^,:{}\[\]<\s]+)*" if is_bare else r"\w+"
        self.further_keys = "[A-Za-z_][A-Za-z0-9_]*"

    def value(self, node: Any, path: str) -> str:
        """Returns the expression of a value. Raises Refused."""
        name = self._rule_of(node, path)
        while self._waiting:
            rule, part, where = self._waiting.pop()
            self._text.define(rule, self._expression(part, where))
        return name

    def string(self, lexeme: str) -> str:
        """Returns the expression of a string between its marks, whose text is `lexeme`."""
        mark, begin, end, behind = self._marks()
        return f"{begin} {self._text.terminal(ended(lexeme, end, (mark,)))} {behind}"

    def sentence(self, grammar: str) -> str:
        """Returns the expression of a sentence of a Lark grammar between marks. Raises Refused."""
        mark, begin, end, behind = self._marks()
        return f"{begin} {marked_sentence(self._text, grammar, MarkerStates((mark,), ''), end, behind)}"

    def _marks(self) -> tuple[str, str, str, str]:
        """Returns the mark, what is written before a text, what ends it as text, and what is written behind that."""
        mark = self._values.text_mark
        assert mark is not None, "strings without marks are JSON's"
        begin: Written = (TextPart(mark.text),) if mark.token_id is None else (TokenPart(mark.token_id),)
        end = mark.text if mark.token_id is None else ""
        return mark.text, self._say(begin), end, "" if mark.token_id is None else self._say(begin)

    def _rule_of(self, node: Any, path: str) -> str:
        node, path = self._schema.followed(node, path)
        if is_free(node):
            return self._any_value()
        name = self._rules.get(id(node))
        if name is None:
            name = self._rules[id(node)] = self._text.reserve()
            self._waiting.append((name, node, path))
        return name

    def _expression(self, node: Any, path: str) -> str:
        if not is_schema(node) or node is False:
            raise invalid("no value satisfies this schema", path)
        check_keywords(node, path)
        if "const" in node or "enum" in node:
            return self._constants(node, path)
        if self._is_json(node, 0):
            return json_rule(lower_part(self._schema.document, node, path))
        self._schema.only(node, _KNOWN, path)
        for keyword in ("allOf", "anyOf", "oneOf", "$ref"):
            if keyword in node:
                return self._parts(node, keyword, path)
        types = types_of(node)
        options = [self._of_type(kind, node, path) for kind in sorted(types) if kind not in ("integer", "number")]
        if {"integer", "number"} & types:
            options.append(self._json(node, sorted({"integer", "number"} & types), path))
        return " | ".join(options)

    def _of_type(self, kind: str, node: dict[str, Any], path: str) -> str:
        match kind:
            case "null":
                return spell(self._values.null)
            case "boolean":
                return f"{spell(self._values.true)} | {spell(self._values.false)}"
            case "array":
                return self._array(node, path)
            case "object":
                return self._object(node, path)
        if self._values.text_mark is None:
            return self._json(node, ["string"], path)
        strings = self._raw.strings(node, path)
        return self.string(strings if strings is not None else ANYTHING)

    def _json(self, node: dict[str, Any], types: list[str], path: str) -> str:
        part = {keyword: value for keyword, value in node.items() if keyword in _OF_SCALARS}
        return self._text.rule(json_rule(lower_part(self._schema.document, {**part, "type": types}, path)))

    def _constants(self, node: dict[str, Any], path: str) -> str:
        keyword = "const" if "const" in node else "enum"
        self._schema.only(node, frozenset(("type", keyword)), path)
        types = types_of(node)
        values = [node["const"]] if keyword == "const" else node["enum"]
        fitting = [v for v in values if type_name(v) in types or ("integer" in types and is_whole(v))]
        if not fitting:
            raise invalid("no value satisfies this schema", f"{path}/{keyword}")
        return " | ".join(self._constant(value, f"{path}/{keyword}") for value in fitting)

    def _constant(self, value: Any, path: str) -> str:
        match value:
            case None:
                return spell(self._values.null)
            case bool():
                return spell(self._values.true if value else self._values.false)
            case str() if self._values.text_mark is not None:
                if self._values.text_mark.text in value:
                    raise unsupported("a constant that holds the mark around strings", path)
                return self.string(f"/{quoted(value)}/")
            case str():
                if UNWRITABLE.search(value):
                    raise unsupported("a control character that has no short escape", path)
                return spell(write_json(value))
            case int() | float():
                return spell(write_json(value))
            case list():
                return self._enclosed("[", [self._constant(item, path) for item in value], "]")
        assert isinstance(value, dict), "JSON has no other values"
        members = [self._constant_member(key, item, path) for key, item in value.items()]
        return self._enclosed("{", members, "}")

    def _constant_member(self, key: str, value: Any, path: str) -> str:
        written = self._key(Member(key, True, path, is_required=True))
        return f"{written} {spell(self._values.colon)} {self._constant(value, path)}"

    def _enclosed(self, begin: str, parts: list[str], end: str) -> str:
        return f"{spell(begin)} {f' {spell(self._values.separator)} '.join(parts)} {spell(end)}"

    def _parts(self, node: dict[str, Any], keyword: str, path: str) -> str:
        where = f"{path}/{keyword}"
        beside = keywords_of(node) - {keyword}
        if beside and not (beside == {"type"} and keyword != "$ref"):
            raise unsupported(f"{keyword} beside other keywords in this format", where)
        if keyword == "$ref" or (keyword == "allOf" and len(node["allOf"]) > 1):
            raise unsupported(f"{keyword} beside other keywords in this format", where)
        parts = node[keyword]
        if beside:
            parts = [part for part in parts if self._schema.prover.types_of(part) <= _wide(types_of(node))]
            if len(parts) < len(node[keyword]):
                raise unsupported(f"{keyword} beside a narrower type in this format", where)
        if keyword == "oneOf":
            self._schema.check_exclusive(parts, where)
        return " | ".join(self._rule_of(part, f"{where}/{i}") for i, part in enumerate(parts))

    def _array(self, node: dict[str, Any], path: str) -> str:
        self._schema.only(node, _KNOWN, path)
        prefix, items = node.get("prefixItems", []), node.get("items", True)
        where = f"{path}/items"
        if isinstance(items, list):
            prefix, items = items, True
        least, most = int(node.get("minItems", 0)), node.get("maxItems")
        if prefix:
            return self._tuple(prefix, items, (least, most), path)
        if items is False or most == 0:
            if least:
                raise invalid("no value satisfies this schema", f"{path}/minItems")
            return spell("[]")
        item = self._rule_of(items, where)
        further = "" if most is None else str(int(most) - 1)
        again = f"({spell(self._values.separator)} {item}){{{max(0, least - 1)},{further}}}"
        empty = f" | {spell('[]')}" if least == 0 else ""
        return f"{spell('[')} {item} {again} {spell(']')}{empty}"

    def _tuple(self, prefix: list[Any], items: Any, bounds: tuple[int, int | None], path: str) -> str:
        least, most = bounds
        if least != len(prefix) or not (items is False or most == len(prefix)):
            raise unsupported("lists with items of their own kinds, except of one length", f"{path}/prefixItems")
        parts = [self._rule_of(part, f"{path}/prefixItems/{i}") for i, part in enumerate(prefix)]
        return self._enclosed("[", parts, "]")

    def _object(self, node: dict[str, Any], path: str) -> str:
        inner = {keyword: value for keyword, value in node.items() if keyword in _OBJECT}
        rules = self._schema.object_rules(inner, path)
        separator = spell(self._values.separator)
        chain = member_chain(self._text, [self._member(member) for member in rules.members], separator)
        if chain is None:
            chain = ""
            if rules.further is not False:
                key = self._any_key()
                one = f"{key} {spell(self._values.colon)} {self._rule_of(rules.further, rules.further_path)}"
                chain = f"({one} ({separator} {one})*)?"
        return f"{spell('{')} {chain} {spell('}')}"

    def _member(self, member: Member) -> tuple[str, bool] | None:
        key = self._key(member)
        if key is None:
            return None
        value = self._rule_of(member.schema, member.path)
        return f"{key} {spell(self._values.colon)} {value}", member.is_required

    def _key(self, member: Member) -> str | None:
        if self._values.text_mark is not None:
            return bare_key(member, self.key_pattern)
        return self._constant(member.name, member.path)

    def _any_key(self) -> str:
        if self._values.text_mark is not None:
            return self._text.terminal(f"/{self.further_keys}/")
        return self._text.rule(json_rule({"type": "string"}))

    def _any_value(self) -> str:
        if self._any is None:
            name = self._any = self._text.reserve()
            kinds = ("null", "boolean", "string", "array", "object")
            options = [self._of_type(kind, {"type": kind}, "") for kind in kinds]
            self._text.define(name, " | ".join([*options, self._json({}, ["number"], "")]))
        return self._any

    def _is_json(self, node: Any, depth: int) -> bool:
        """Whether JSON is written the same: strings quoted alike, and no words of the notation's own inside."""
        if self._values.text_mark is not None or depth > 16 or not isinstance(node, dict) or "$ref" in node:
            return False
        types = types_of(node)
        unions = {"anyOf", "oneOf", "allOf", "patternProperties"}
        if "type" not in node or {"null", "boolean"} & types or unions & node.keys():
            return False
        if "array" in types and not all(self._is_json(part, depth + 1) for part in _items(node)):
            return False
        if "object" in types:
            is_closed = node.get("additionalProperties") is False
            return is_closed and all(self._is_json(part, depth + 1) for part in node.get("properties", {}).values())
        return True


def member_chain(text: LarkText, members: list[tuple[str, bool] | None], separator: str) -> str | None:
    """Returns the rule of members in this order, those left out that need not be there; None where there are none.

    Each is an expression and whether it must be there; None: it cannot be written.
    """
    told = [member for member in members if member is not None]
    if not told:
        return None
    first = rest = ""
    for expression, is_required in reversed(told):
        written = text.rule(expression)
        begun = f"{separator} {written} {rest}".strip()
        fresh = f"{written} {rest}".strip()
        if is_required:
            rest, first = text.rule(begun), text.rule(fresh)
        else:
            rest = text.rule(f"{begun} | {rest or _EMPTY}")
            first = text.rule(f"{fresh} | {first or _EMPTY}")
    return first


_EMPTY = '""'


def bare_key(member: Member, pattern: str) -> str | None:
    """Returns the expression of a key without quotes, None where it is left out. Raises Refused where it must be."""
    if re.fullmatch(pattern, member.name) is not None:
        return spell(member.name)
    if member.is_required:
        raise unsupported("a name that cannot be written in this format", member.path)
    return None


def _items(node: dict[str, Any]) -> list[Any]:
    items = node.get("items")
    if isinstance(items, list) or "prefixItems" in node or items is None:
        return [None]
    return [items]


def _wide(types: frozenset[str]) -> frozenset[str]:
    return types | {"number"} if "integer" in types else types


def is_whole(value: Any) -> bool:
    """Whether a JSON value is an integer."""
    return is_number(value) and value == int(value)
