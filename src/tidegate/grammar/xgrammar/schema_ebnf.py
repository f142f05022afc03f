"""Lowered schemas in EBNF, for backends whose own reading of JSON Schema is weaker than it says.

Every rule of JSON's spelling is written out here, the same as `json_text.py` states for all backends: one spelling for
each string, properties in the order of the schema, at most so many blanks. What is written is exact: a keyword that
has no place here is refused by `schema_cases.py`.
"""

import json
from decimal import Decimal
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import MAX_SCHEMA_NODES, MAX_WHITESPACE
from tidegate.grammar.patterns.char_set import EVERY, json_class, literal
from tidegate.grammar.patterns.ecma_pattern import other_than
from tidegate.grammar.patterns.regex_ebnf import pattern_ebnf
from tidegate.grammar.refusal import invalid, too_complex, unsupported
from tidegate.grammar.schema.schema_support import TYPES
from tidegate.grammar.xgrammar.number_ebnf import as_decimal, integer_between, number_between
from tidegate.grammar.xgrammar.plain_formats import FORMAT_PATTERNS
from tidegate.grammar.xgrammar.schema_cases import OBJECT_KEYWORDS, common_types, flat_cases

MAX_EBNF_BYTES = 256 * 1024
"""A grammar as it is written for xgrammar, whose time to compile grows with it: about 2.5 s a MiB."""

MAX_COUNTED = 10_000
"""Items, characters or properties that a bound may count."""


def require_small(text: str) -> str:
    """Returns a grammar that is not too large. Raises Refused."""
    if len(text) > MAX_EBNF_BYTES:
        raise too_complex(
            "the grammar, written out, is too large", LimitFact("grammar_bytes", MAX_EBNF_BYTES, len(text))
        )
    return text


_MAX_CHAIN = 1_000
"""Characters that a chain of rules counts. xgrammar's own counts take longer with each character that was written:
a mask within `{1,255}` more than a second.
"""

_STRING_KEYWORDS = frozenset(("pattern", "format", "minLength", "maxLength"))
_NUMBER_KEYWORDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_CHARACTER = json_class(EVERY) or ""

_JSON_RULES = f"""ws ::= [ \\t\\r\\n]{{0,{MAX_WHITESPACE}}}
character ::= {_CHARACTER}
string ::= "\\"" character* "\\""
integer ::= {integer_between(None, None)}
number ::= {number_between(None, None, is_open_low=False, is_open_high=False)}
member ::= string ws ":" ws any
object ::= "{{" ws "}}" | "{{" ws member (ws "," ws member)* ws "}}"
array ::= "[" ws "]" | "[" ws any (ws "," ws any)* ws "]"
any ::= object | array | string | number | "true" | "false" | "null"
"""


class SchemaEbnf:
    """Writes rules for values. One object for each grammar, so that names of rules differ."""

    def __init__(self) -> None:
        self._rules: list[str] = []
        self._definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []
        self._num_parts = 0
        self._chain = 0

    def text(self, root: str) -> str:
        """Returns the grammar; `root` is the right side of its first rule."""
        chain = [f'most{i} ::= character most{i - 1} | ""' for i in range(2, self._chain + 1)]
        first = ['most1 ::= character | ""'] if self._chain else []
        return "\n".join((f"root ::= {root}", *self._rules, *first, *chain)) + "\n" + _JSON_RULES

    def value(self, schema: Any) -> str:
        """Returns what a value that a lowered schema allows looks like. Raises Refused."""
        self._definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
        self._names = {}
        found = self._value(schema)
        if found is None:
            raise invalid("no value satisfies this schema", "")
        while self._waiting:
            name = self._waiting.pop()
            written = self._value(self._definitions[name])
            if written is None:
                raise unsupported("a reference to a schema that nothing satisfies")
            self._rules.append(f"{self._names[name]} ::= {written}")
        return found

    def _value(self, schema: Any) -> str | None:
        self._num_parts += 1
        if self._num_parts > MAX_SCHEMA_NODES:
            limit = LimitFact("schema_nodes", MAX_SCHEMA_NODES, self._num_parts)
            raise too_complex("the grammar has too many parts", limit)
        if schema is False:
            return None
        if isinstance(schema, dict) and set(schema) - {"$defs"} == {"$ref"}:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if isinstance(schema, dict) and set(schema) - {"$defs"} == {"anyOf"}:
            return _either([self._value(part) for part in schema["anyOf"]])
        cases = flat_cases(schema, self._definitions)
        return _either([self._case(case) for case in cases])

    def _reference(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = f"d{len(self._rules)}x{len(self._names)}"
            self._waiting.append(name)
        return self._names[name]

    def _named(self, text: str) -> str:
        name = f"r{len(self._rules)}"
        self._rules.append(f"{name} ::= {text}")
        return name

    def _case(self, case: dict[str, Any]) -> str | None:
        if "enum" in case:
            return _either([_constant(value) for value in case["enum"] if _allows(case, value)])
        types = common_types(case.get("type", list(TYPES)), list(TYPES))
        if set(case) <= {"type"} and types == sorted(set(TYPES) - {"integer"}):
            return "any"
        return _either([self._typed(case, kind) for kind in types])

    def _typed(self, case: dict[str, Any], kind: str) -> str | None:
        match kind:
            case "null":
                return '"null"'
            case "boolean":
                return '("true" | "false")'
            case "string":
                return self._string(case)
            case "integer" | "number":
                return _number(case, kind)
            case "array":
                return self._array(case)
        return self._object(case)

    def _string(self, case: dict[str, Any]) -> str | None:
        least, most = _counts(case, "minLength", "maxLength")
        if most is not None and least > most:
            return None
        pattern = case.get("pattern")
        if "format" in case:
            if pattern is not None or case["format"] not in FORMAT_PATTERNS:
                raise unsupported(f"the format {case['format']}, or a pattern beside a format")
            pattern = FORMAT_PATTERNS[case["format"]]
        if pattern is not None:
            inside = pattern_ebnf(pattern, least, most)
            return None if inside is None else f'("\\"" {inside} "\\"")'
        if least == 0 and most is None:
            return "string"
        if most is not None and 0 < most - least <= _MAX_CHAIN:
            self._chain = max(self._chain, most - least)
            return f'("\\"" {f"character{{{least}}} " if least else ""}most{most - least} "\\"")'
        return f'("\\"" character{{{least},{"" if most is None else most}}} "\\"")'

    def _array(self, case: dict[str, Any]) -> str | None:
        least, most = _counts(case, "minItems", "maxItems")
        items = [self._value(part) for part in case.get("prefixItems", ())]
        further = self._value(case.get("items", True))
        reach = next((i for i, item in enumerate(items) if item is None), len(items))
        if reach < len(items) or further is None:
            most = reach if most is None else min(most, reach)
        if most is not None and least > most:
            return None
        tail = ""
        if further is not None and reach == len(items) and (most is None or most > reach):
            left = "" if most is None else most - max(reach, 1)
            tail = f' (ws "," ws {further}){{{max(0, least - max(reach, 1))},{left}}}'
        count = reach if most is None else min(reach, most)
        if count == 0:
            if not tail:
                return '("[" ws "]")' if least == 0 else None
            full = f'"[" ws {further}{tail} ws "]"'
            return f'("[" ws "]" | {full})' if least == 0 else f"({full})"
        return self._tuple(items[:count], least, tail)

    def _tuple(self, items: list[str | None], least: int, tail: str) -> str:
        rest = tail
        for i in range(len(items) - 1, 0, -1):
            written = f'ws "," ws {items[i]}{" " + rest if rest else ""}'
            rest = self._named(written) if i >= least else ""
            rest = f"{rest}?" if i >= least else written
            if i % 16 == 0:
                rest = self._named(rest)
        full = f'"[" ws {items[0]} {rest} ws "]"'
        return f'("[" ws "]" | {full})' if least == 0 else f"({full})"

    def _object(self, case: dict[str, Any]) -> str | None:
        if not set(case) & OBJECT_KEYWORDS:
            return "object"
        required = dict.fromkeys(case.get("required", ()))
        properties: dict[str, Any] = dict(case.get("properties", {}))
        for name in required:
            properties.setdefault(name, case.get("additionalProperties", True))
        written = {name: self._value(part) for name, part in properties.items()}
        if any(written[name] is None for name in required):
            return None
        further = self._further(case, list(properties))
        members = [
            (f'{_constant(name)} ws ":" ws {value}', name in required)
            for name, value in written.items()
            if value is not None
        ]
        least, most = _counts(case, "minProperties", "maxProperties")
        num_required = sum(is_required for _, is_required in members)
        if (least > num_required or most is not None) and num_required < len(members):
            raise unsupported("a count of properties beside optional ones")
        if most is not None and most < num_required:
            return None
        span = (max(0, least - num_required), None if most is None else most - num_required)
        if further is None and span[0] > 0:
            return None
        if span[0] > 1:
            raise unsupported("a count of properties that are not listed: one of them could come twice")
        return self._members(members, further, span)

    def _further(self, case: dict[str, Any], names: list[str]) -> str | None:
        """Returns a member of another name than these, or None where there is none."""
        additional = case.get("additionalProperties", True)
        patterns: dict[str, Any] = case.get("patternProperties", {})
        if not patterns:
            value = self._value(additional)
            if value is None:
                return None
            key = f'"\\"" {pattern_ebnf(other_than(names))} "\\""' if names else "string"
            return self._named(f'{key} ws ":" ws {value}')
        if names or len(patterns) > 1 or additional is not False:
            raise unsupported("patternProperties beside other names")
        ((pattern, part),) = patterns.items()
        value, key_text = self._value(part), pattern_ebnf(pattern)
        if value is None or key_text is None:
            return None
        return self._named(f'"\\"" {key_text} "\\"" ws ":" ws {value}')

    def _members(self, members: list[tuple[str, bool]], further: str | None, span: tuple[int, int | None]) -> str:
        """Two chains of rules: what may follow before the first member is written, and after it."""
        least, most = span
        first, later = '""', '""'
        if further is not None and most != 0:
            later = f'(ws "," ws {further}){{{least},{"" if most is None else most}}}'
            left = "" if most is None else most - 1
            first = f'{further} (ws "," ws {further}){{{max(0, least - 1)},{left}}}'
            first = f"({first})" if least > 0 else f"({first})?"
        for member, is_required in reversed(members):
            later = self._named(later)
            begun = f"{member} {later}"
            first = f"({begun})" if is_required else f"({begun} | {self._named(first)})"
            later = f'(ws "," ws {begun})' if is_required else f'(ws "," ws {begun} | {later})'
        return self._named(f'"{{" ws {first} ws "}}"')


def _either(options: list[str | None]) -> str | None:
    found = list(dict.fromkeys(option for option in options if option is not None))
    return f"({' | '.join(found)})" if len(found) > 1 else next(iter(found), None)


def _counts(case: dict[str, Any], least: str, most: str) -> tuple[int, int | None]:
    low, high = int(case.get(least, 0)), case.get(most)
    if max(low, int(high or 0)) > MAX_COUNTED:
        raise too_complex("a count is too large", LimitFact("schema_count", MAX_COUNTED, max(low, int(high or 0))))
    return low, None if high is None else int(high)


def _number(case: dict[str, Any], kind: str) -> str | None:
    low, is_open_low = _bound(case, "minimum", "exclusiveMinimum", is_low=True)
    high, is_open_high = _bound(case, "maximum", "exclusiveMaximum", is_low=False)
    if "multipleOf" in case:
        step = as_decimal(case["multipleOf"])
        if step != 1 and not (kind == "integer" and step < 1 and (1 / step) % 1 == 0):
            raise unsupported("multipleOf")
        kind = "integer"
    if kind == "number":
        return number_between(low, high, is_open_low=is_open_low, is_open_high=is_open_high)
    if low is not None and is_open_low and low == int(low):
        low += 1
    if high is not None and is_open_high and high == int(high):
        high -= 1
    return integer_between(low, high)


def _bound(case: dict[str, Any], plain: str, exclusive: str, *, is_low: bool) -> tuple[Decimal | None, bool]:
    found = [(as_decimal(case[key]), key == exclusive) for key in (plain, exclusive) if key in case]
    if not found:
        return None, False
    chosen = (max if is_low else min)(value for value, _ in found)
    return chosen, (chosen, True) in found


def _constant(value: Any) -> str:
    if isinstance(value, dict):
        members = [f'{_constant(name)} ws ":" ws {_constant(part)}' for name, part in value.items()]
        return _bracketed("{", members, "}")
    if isinstance(value, list):
        return _bracketed("[", [_constant(part) for part in value], "]")
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"({literal(str(int(value)))} | {literal(json.dumps(value))})"
    return literal(json.dumps(value, ensure_ascii=False))


def _bracketed(opening: str, parts: list[str], closing: str) -> str:
    inside = ' ws "," ws '.join(parts)
    return f'("{opening}" ws {inside} ws "{closing}")' if parts else f'("{opening}" ws "{closing}")'


def _allows(case: dict[str, Any], value: Any) -> bool:
    """Whether a constant keeps what else is said of it. Raises Refused where that is not simple."""
    kind = _type(value)
    if kind not in common_types(case.get("type", list(TYPES)), list(TYPES)) and not (
        kind == "integer" and "number" in common_types(case.get("type", list(TYPES)), list(TYPES))
    ):
        return False
    relevant = {"string": _STRING_KEYWORDS, "integer": _NUMBER_KEYWORDS, "number": _NUMBER_KEYWORDS}.get(kind)
    if relevant is None:
        structural = set(case) - {"type", "enum"} - _STRING_KEYWORDS - _NUMBER_KEYWORDS
        if kind in ("object", "array") and structural:
            raise unsupported("objects or lists as constants beside other rules")
        return True
    if set(case) & relevant - {"minLength", "maxLength", "minimum", "maximum"}:
        raise unsupported("constants beside patterns, formats or multiples")
    if kind == "string":
        return bool(case.get("minLength", 0) <= len(value) <= case.get("maxLength", len(value)))
    return bool(case.get("minimum", value) <= value <= case.get("maximum", value))


def _type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
