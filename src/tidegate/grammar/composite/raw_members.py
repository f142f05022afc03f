"""Values of members in tags: strings as raw text, everything else as JSON.

What a reader makes of raw text depends on the types of the parameter: where several are allowed, a narrower one comes
before string. So a string must not look like a value of another type that is allowed; and a value that is not a string
holds none of the texts that end values. One lexeme must not be the beginning of another here: beside strings, words
and numbers are lexemes with their end, and where numbers have bounds no string begins like one.
"""

from collections.abc import Callable
from typing import Any

from tidegate.grammar.composite.notation_schema import NotationSchema, is_free, types_of
from tidegate.grammar.composite.raw_text import RawText, read_types
from tidegate.grammar.composite.unmarked_json import keep_unmarked
from tidegate.grammar.lark.embedded_lark import marked_sentence
from tidegate.grammar.lark.lark_text import LarkText, any_of, ended, json_rule, quoted, spell
from tidegate.grammar.lark.marker_states import MarkerStates
from tidegate.grammar.refusal import invalid, unsupported
from tidegate.grammar.schema.lowering import lower_part
from tidegate.inference.grammar_parts import RawValues, TextPart, Written

_BLANK = r"[ \t\r\n]*"
_INTEGER = "-?(?:0|[1-9][0-9]*)"
_NUMBER = rf"{_INTEGER}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_LOOKS = {
    "null": rf"~/{_BLANK}(?:null|None){_BLANK}/",
    "boolean": rf"~/{_BLANK}(?:true|false|True|False){_BLANK}/",
    "number": rf"~/{_BLANK}{_NUMBER}{_BLANK}/",
    "object": rf"~/{_BLANK}\{{(?s:.*)/",
    "array": rf"~/{_BLANK}\[(?s:.*)/",
}
_NOT_LIKE_A_NUMBER = rf"~/{_BLANK}[0-9-](?s:.*)/"
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_WORDS = {"null": None, "true": True, "false": False}


class RawMembers:
    """Writes the values of one object's members. `say` returns the expression of fixed text."""

    key_pattern = r'[^<>"\r\n]+'
    further_keys = "[A-Za-z_][A-Za-z0-9_-]*"

    def __init__(
        self, text: LarkText, schema: NotationSchema, values: RawValues, say: Callable[[Written], str]
    ) -> None:
        self._text = text
        self._schema = schema
        self._raw = RawText(schema)
        self._values = values
        head = values.end[0] if values.end else None
        self._end_text = head.text if isinstance(head, TextPart) else ""
        self._end = say(values.end)
        self._behind = say(values.end[1:] if self._end_text else values.end)

    def value(self, node: Any, path: str) -> str:
        """Returns the expression of a value with its end. Raises Refused."""
        node, path = self._schema.followed(node, path)
        values = self._values
        strings = self._raw.strings(node, path)
        read = read_types(self._schema.root, node)
        if strings is not None and "string" not in read:
            strings = None
        others = self._other_types(node, read)
        options: list[str] = []
        if values.text_lead:
            options += [f"{spell(values.text_lead)} {self._lexeme(strings)}"] if strings is not None else []
            options += [f"{spell(values.other_lead)} {self._json(node, others, path)}"] if others else []
        elif strings is None:
            options += [self._json(node, others, path)] if others else []
        elif is_free(node) or read == {"string"}:
            options.append(self._lexeme(strings))
        else:
            options += self._mixed(node, path, strings, read, others)
        if not options:
            raise invalid("no value satisfies this schema", path)
        return self._text.rule(" | ".join(options))

    def string(self, lexeme: str) -> str:
        """Returns the expression of a string with its end, whose text is `lexeme`."""
        lead = f"{spell(self._values.text_lead)} " if self._values.text_lead else ""
        return self._text.rule(lead + self._lexeme(lexeme))

    def sentence(self, grammar: str) -> str:
        """Returns the expression of a sentence of a Lark grammar, with its end. Raises Refused."""
        values = self._values
        if len(values.lead) > 1:
            raise unsupported("a Lark grammar beside such a lead")
        lead = f"{spell(values.text_lead)} " if values.text_lead else ""
        states = MarkerStates(values.ends, values.lead)
        return lead + marked_sentence(self._text, grammar, states, self._end_text, self._behind)

    def _other_types(self, node: Any, read: frozenset[str]) -> list[str]:
        read = read | ({"number"} if "integer" in read else set())
        return sorted((self._schema.prover.types_of(node) - {"string"}) & read)

    def _mixed(self, node: Any, path: str, strings: str, read: frozenset[str], others: list[str]) -> list[str]:
        """Strings beside other types, which are told apart by how they look."""
        kinds = {"number" if kind == "integer" else kind for kind in read} - {"string"}
        clauses = [f"({strings})", *(_LOOKS[kind] for kind in sorted(kinds))]
        words = [word for word, value in _WORDS.items() if _allows(self._schema, node, path, value)]
        options = [self._lexeme(f"/{any_of(words)}/")] if words else []
        as_json = [kind for kind in others if kind in ("object", "array")]
        if "number" in others:
            numbers = _numbers(self._schema, node, path)
            if numbers is None:
                as_json.append("number")
                clauses.append(_NOT_LIKE_A_NUMBER)
            elif numbers:
                options.append(self._lexeme(numbers))
        options.append(self._lexeme(" & ".join(clauses)))
        return options + ([self._json(node, as_json, path)] if as_json else [])

    def _lexeme(self, value: str) -> str:
        if self._values.lead:
            value = f"({value}) & ~/{quoted(self._values.lead)}(?s:.*)/"
        return f"{self._text.terminal(ended(value, self._end_text, self._values.ends))} {self._behind}"

    def _json(self, node: Any, types: list[str], path: str) -> str:
        part = node if isinstance(node, dict) and types_of(node) <= {*types, "integer"} else _typed(node, types)
        lowered = lower_part(self._schema.document, part, path)
        if "object" in types or "array" in types:
            lowered = keep_unmarked(lowered, self._values.ends, path)
        return f"{self._text.rule(json_rule(lowered))} {self._end}"


def _typed(node: Any, types: list[str]) -> dict[str, Any]:
    return {"type": types} if node is True else {"allOf": [node, {"type": types}]}


def _parts(schema: NotationSchema, node: dict[str, Any], path: str) -> list[list[Any]]:
    """Returns unions of schemas, all of which hold for the value; `not` and `if` were refused before."""
    unions = [[part] for part in node.get("allOf", ())]
    if "$ref" in node:
        unions.append([schema.document.resolve(node, node["$ref"], path)[0]])
    return unions + [node[keyword] for keyword in ("anyOf", "oneOf") if keyword in node]


def _allows(schema: NotationSchema, node: Any, path: str, value: bool | None) -> bool:
    node, path = schema.followed(node, path)
    if isinstance(node, bool):
        return node
    if ("null" if value is None else "boolean") not in types_of(node):
        return False
    lists = [[node["const"]]] if "const" in node else []
    lists += [node["enum"]] if "enum" in node else []
    if not all(any(other is value for other in values) for values in lists):
        return False
    unions = _parts(schema, node, path)
    return all(any(_allows(schema, part, path, value) for part in parts) for parts in unions)


def _numbers(schema: NotationSchema, node: Any, path: str) -> str | None:
    """Returns the lexeme of the numbers that a schema allows, "" for none, None where it has bounds."""
    node, path = schema.followed(node, path)
    if isinstance(node, bool):
        return f"/{_NUMBER}/" if node else ""
    types = types_of(node)
    if not {"number", "integer"} & types:
        return ""
    if _BOUNDS & node.keys():
        return None
    clauses = [f"/{_NUMBER if 'number' in types else _INTEGER}/"]
    for values in [[node["const"]]] if "const" in node else [node["enum"]] if "enum" in node else []:
        numbers = [str(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        clauses.append(f"/{any_of(numbers)}/" if numbers else "")
    for parts in _parts(schema, node, path):
        options = [_numbers(schema, part, path) for part in parts]
        if None in options:
            return None
        clauses.append(" | ".join(f"({option})" for option in options if option))
    return " & ".join(f"({clause})" for clause in clauses) if all(clauses) else ""
