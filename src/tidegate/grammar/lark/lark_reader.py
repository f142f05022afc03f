"""Reads a caller's Lark grammar, in llguidance's dialect, that llguidance has found valid.

Decides what of the dialect can be carried into another notation; refuses the rest by name. Lexing follows llguidance.
"""

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from tidegate.errors import LimitFact
from tidegate.grammar.lark.lark_regex import one_char, read_regex
from tidegate.grammar.lark.lark_tree import EMPTY, LarkGrammar, Name, OneOf, Options, Series, Times, Tree
from tidegate.grammar.refusal import too_complex, unsupported

_TOKENS = re.compile(
    r"(?P<skip>(?:\#|//)[^\n]*|[ \t\r]+)"
    r"|(?P<newline>\n)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*"i?)'
    r"|(?P<regex>/(?:[^/\\]|\\.)+/[a-zA-Z]*)"
    r"|(?P<statement>%[A-Za-z_]+)"
    r"|(?P<rule>!?[_?]?[a-z][_a-z0-9\-]*)"
    r"|(?P<terminal>_?[A-Z][_A-Z0-9\-]*)"
    r"|(?P<number>[+-]?[0-9]+)"
    r"|(?P<sign>->|\.\.|[:|()\[\]{}*+?~,.])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\x([0-9A-Fa-f]{2})|\\(?:[\"\\/bfnrt]|u[0-9A-Fa-f]{4})")
_EXPONENT = r"[eE](\+|-)?[0-9]+"
_DECIMAL = r"([0-9]+\.[0-9]*|\.[0-9]+)"
_FLOAT = rf"{_DECIMAL}({_EXPONENT})?|[0-9]+{_EXPONENT}"
COMMON = {
    "DIGIT": "[0-9]", "HEXDIGIT": "[0-9a-fA-F]", "INT": "[0-9]+", "SIGNED_INT": "[+-]?[0-9]+", "DECIMAL": _DECIMAL,
    "_EXP": _EXPONENT, "FLOAT": _FLOAT, "SIGNED_FLOAT": f"[+-]?({_FLOAT})", "NUMBER": f"{_FLOAT}|[0-9]+",
    "SIGNED_NUMBER": f"[+-]?({_FLOAT}|[0-9]+)", "ESCAPED_STRING": r'"([^"\\]|\\.)*"', "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]", "LETTER": "[a-zA-Z]", "WORD": "[a-zA-Z]+", "CNAME": "[a-zA-Z_][a-zA-Z0-9_]*",
    "WS_INLINE": "[ \\t]+", "WS": "[ \\t\\f\\r\\n]+", "CR": "\\r", "LF": "\\n", "NEWLINE": "(\\r?\\n)+",
    "SH_COMMENT": "#[^\\n]*", "CPP_COMMENT": "//[^\\n]*", "C_COMMENT": r"/\*[^*]*\*+([^/*][^*]*\*+)*/",
    "SQL_COMMENT": "--[^\\n]*",
}  # fmt: skip
"""The terminals of `%import common`, as llguidance has them."""

MAX_LARK_TOKENS = 20_000
"""Names, literals and signs of a grammar inside a call."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


_END = _Token("end", "")


def read_lark(text: str) -> LarkGrammar:
    """Raises Refused for what cannot be carried into another notation."""
    reader = _LarkReader(_tokens(text))
    reader.read()
    return reader.grammar


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            _refuse(f"{text[at : at + 16]!r}")
        if match.lastgroup != "skip":
            found.append(_Token(str(match.lastgroup), match[0]))
        at = match.end()
        if len(found) > MAX_LARK_TOKENS:
            limit = LimitFact("grammar_rules", MAX_LARK_TOKENS, len(found))
            raise too_complex("the grammar has too many words", limit)
    return found


class _LarkReader:
    def __init__(self, tokens: list[_Token]) -> None:
        self.grammar = LarkGrammar()
        self._tokens = tokens
        self._at = 0
        self._ignored: list[Tree] = []
        self._in_rule = False

    def read(self) -> None:
        while self._peek() is not _END:
            if not self._take("\n"):
                self._item()
        if self._ignored:
            self.grammar.ignored = self._terminal(Options(tuple(self._ignored)))

    def _peek(self, ahead: int = 0) -> _Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, text: str) -> bool:
        token = self._peek()
        is_there = token.text == text and token.kind in ("sign", "newline")
        self._at += is_there
        return is_there

    def _item(self) -> None:
        token = self._next()
        if token.kind == "statement":
            self._statement(token.text)
            return
        if token.kind not in ("rule", "terminal") or not self._take(":"):
            _refuse(f"what stands behind {token.text[:32]!r}")
        self._in_rule = token.kind == "rule"
        if self._in_rule:
            self.grammar.rules[token.text.lstrip("!?")] = self._options()
        else:
            self.grammar.terminals[token.text] = self._options()

    def _statement(self, word: str) -> None:
        if word == "%ignore":
            self._in_rule = False
            self._ignored.append(self._options())
        elif word == "%import":
            self._import()
        else:
            _refuse(word)

    def _import(self) -> None:
        if self._next().text != "common" or not self._take("."):
            if not self._take("("):
                _refuse("an import from elsewhere than common")
            while not self._take(")"):
                self._define(name := self._next().text, name)
                self._take(",")
            return
        name = self._next().text
        self._define(self._next().text if self._take("->") else name, name)

    def _define(self, name: str, common: str) -> None:
        if common not in COMMON:
            _refuse(f"common.{common[:32]}")
        self.grammar.terminals[name] = read_regex(COMMON[common], "")

    def _options(self) -> Tree:
        options = [self._series()]
        while self._take("|") or self._next_line_goes_on():
            options.append(self._series())
        return options[0] if len(options) == 1 else Options(tuple(options))

    def _next_line_goes_on(self) -> bool:
        ahead = 0
        while self._peek(ahead).kind == "newline":
            ahead += 1
        if ahead and self._peek(ahead).text == "|":
            self._at += ahead + 1
            return True
        return False

    def _series(self) -> Tree:
        parts: list[Tree] = []
        while self._peek().kind not in ("newline", "end") and self._peek().text not in ("|", ")", "]", "->"):
            parts.append(self._repeated(self._atom()))
        if self._take("->"):
            self._next()
        return parts[0] if len(parts) == 1 else Series(tuple(parts))

    def _repeated(self, tree: Tree) -> Tree:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return Times(tree, *bounds)
        if self._take("~"):
            least = self._number()
            return Times(tree, least, self._number() if self._take("..") else least)
        if self._take("{"):
            least = 0 if self._peek().text == "," else self._number()
            most: int | None = least
            if self._take(","):
                most = None if self._peek().text == "}" else self._number()
            self._next()
            return Times(tree, least, most)
        return tree

    def _number(self) -> int:
        token = self._next()
        if token.kind != "number":
            _refuse(f"{token.text[:32]!r}")
        return int(token.text)

    def _atom(self) -> Tree:
        if self._take("("):
            tree = self._options()
            self._next()
            return tree
        if self._take("["):
            tree = Times(self._options(), 0, 1)
            self._next()
            return tree
        token = self._next()
        match token.kind:
            case "string":
                return self._leaf(self._string(token.text))
            case "regex":
                pattern, _, flags = token.text[1:].rpartition("/")
                return self._leaf(read_regex(pattern, flags))
            case "rule" | "terminal":
                if self._peek().text == "{" and self._peek(1).kind in ("rule", "terminal", "string", "regex"):
                    _refuse("a template")
                return Name(token.text)
        _refuse(f"{token.text[:32]!r}")

    def _string(self, text: str) -> Tree:
        is_any_case = text.endswith("i")
        characters = _characters(text.removesuffix("i"))
        if self._take(".."):
            last = _characters(self._next().text)
            return OneOf(f"\\x{{{ord(characters):x}}}-\\x{{{ord(last):x}}}")
        parts = tuple(one_char(character, is_any_case=is_any_case) for character in characters)
        return parts[0] if len(parts) == 1 else Series(parts)

    def _leaf(self, tree: Tree) -> Tree:
        if not self._in_rule or tree == EMPTY:
            return tree
        return Name(self._terminal(tree))

    def _terminal(self, tree: Tree) -> str:
        name = f"#{len(self.grammar.terminals)}"
        self.grammar.terminals[name] = tree
        return name


def _characters(text: str) -> str:
    """Returns what a string literal says. Raises Refused for escapes that are not read alike everywhere."""
    inner = text[1:-1]
    if "\\" in _ESCAPE.sub("", inner):
        _refuse("such an escape in a string")
    spelled = re.sub(_ESCAPE, lambda found: f"\\u00{found[1]}" if found[1] else found[0], inner)
    return str(json.loads(f'"{spelled}"', strict=False))


def _refuse(what: str) -> NoReturn:
    raise unsupported(f"{what} is not enforced in a grammar inside a call")
