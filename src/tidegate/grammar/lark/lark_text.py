"""Lark text in llguidance's dialect, written rule by rule; and regular expressions for it.

Fixed text is spelled character by character, so that its characters, and not whole texts, are the lexemes: a lexer that
takes the longest lexeme would otherwise never see that one text is the beginning of another.
"""

import json
from dataclasses import dataclass
from typing import Any

import llguidance

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import JSON_OPTIONS, MAX_SCHEMA_NODES
from tidegate.grammar.refusal import invalid, too_complex

ANYTHING = "/(?s:.*)/"
SOMETHING = "/(?s:.+)/"
NOTHING = '""'
_JSON = "%json "


@dataclass(frozen=True, slots=True)
class WrittenGrammar:
    """Lark text, and the JSON schemas in it, each as an expression with the place where it was given."""

    text: str
    json: tuple[tuple[str, str], ...] = ()


class LarkText:
    """Collects rules and terminals. What is said twice is written once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._json: list[tuple[str, str]] = []
        self.place = ""
        """Where what is written now was given."""
        self._names: dict[str, str] = {}

    def reserve(self) -> str:
        """Returns the name of a rule that is defined later. Raises Refused when there are too many."""
        self._names[f"\0{len(self._names)}"] = ""
        if len(self._names) > MAX_SCHEMA_NODES:
            limit = LimitFact("schema_nodes", MAX_SCHEMA_NODES, len(self._names))
            raise too_complex("the grammar has too many parts", limit)
        return f"r{len(self._names)}"

    @property
    def num_names(self) -> int:
        return len(self._names)

    def define(self, name: str, expression: str) -> None:
        """Says what a reserved rule is."""
        self._lines.append(f"{name}: {expression}")
        if expression.startswith(_JSON):
            self._json.append((self.place, expression))

    def rule(self, expression: str) -> str:
        """Returns the name of a rule for `expression`. Raises Refused when there are too many."""
        return self._named(expression, str.lower)

    def terminal(self, expression: str) -> str:
        """Returns the name of a terminal for `expression`. Raises Refused when there are too many."""
        return self._named(f" {expression}", str.upper)

    def write(self, start: str) -> "WrittenGrammar":
        """Returns the whole grammar, beginning with the rule `start`."""
        return WrittenGrammar("\n".join([f"start: {start}", *self._lines]), tuple(self._json))

    def _named(self, expression: str, spell: Any) -> str:
        name = self._names.get(expression)
        if name is None:
            name = self._names[expression] = spell(self.reserve())
            self.define(name, expression.strip())
        return name


def spell(text: str) -> str:
    """Returns an expression for exactly this text. Raises Refused for half of a surrogate pair."""
    return " ".join(map(literal, text)) or NOTHING


def literal(text: str) -> str:
    """Returns `text` as one lexeme. Raises Refused for half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid("the text of a grammar holds half of a surrogate pair") from error
    return json.dumps(text, ensure_ascii=False)


def json_rule(schema: dict[str, Any]) -> str:
    """Returns an expression for a JSON value; `schema` has been lowered."""
    return _JSON + json.dumps({**schema, "x-guidance": JSON_OPTIONS})


def regex(pattern: str) -> str:
    """Returns a regular expression as a lexeme, matching from end to end."""
    return f"/{llguidance.regex_to_lark(pattern, '')}/"


def quoted(text: str) -> str:
    """Returns a regular expression for exactly this text."""
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def any_of(texts: list[str] | tuple[str, ...]) -> str:
    """Returns a regular expression for any of these texts."""
    return "(?:" + "|".join(map(quoted, texts)) + ")"


def without(texts: tuple[str, ...]) -> str:
    """Returns what is added to a lexeme so that none of `texts` comes in it."""
    return f" & ~/(?s:.*){any_of(texts)}(?s:.*)/" if texts else ""


def ended(value: str, end: str, ends: tuple[str, ...]) -> str:
    """Returns a lexeme: text that `value` allows, then `end`, which is the first of `ends` in it.

    A longer one of `ends` that ends where `end` does would begin earlier, so it is not there either.
    """
    longer = tuple(other for other in ends if other.endswith(end) and other != end)
    clauses = [f"({value}) {literal(end)}" if end else value]
    if ends:
        clauses.append(f"~/(?s:.*){any_of(ends)}(?s:.+)/" if end else f"~/(?s:.*){any_of(ends)}(?s:.*)/")
    if longer:
        clauses.append(f"~/(?s:.*){any_of(longer)}/")
    return " & ".join([f"({clauses[0]})" if len(clauses) > 1 else clauses[0], *clauses[1:]])
