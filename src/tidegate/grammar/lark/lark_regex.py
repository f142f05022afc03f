"""Regular expressions of Lark terminals, in Rust's syntax, as trees whose leaves are single characters and classes.

Classes are not looked into: they stay as they are written, so what they mean is for who matches them. Refused is what
has no place in such a tree: borders, anchors, the flags `x`, `R` and `-u`.
"""

import re
from typing import NoReturn

from tidegate.grammar.lark.lark_tree import EMPTY, OneOf, Options, Series, Times, Tree
from tidegate.grammar.refusal import unsupported

MAX_LARK_REGEX_DEPTH = 64
"""Groups within groups of one regular expression."""

_COUNT = re.compile(r"\{\s*(\d{1,9})\s*(,?)\s*(\d{0,9})\s*\}")
_GROUP = re.compile(r"\?(?:P?<\w+>|([imsuU]*)(?:-([imsU]*))?(:|\)))")
_ESCAPE = re.compile(
    r"\\(?:[xuU]\{[0-9A-Fa-f]{1,8}\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[pP](?:\{[^}]*\}|[A-Za-z])"
    r"|[dDsSwWnrtfva]|[^A-Za-z0-9<>])",
    re.DOTALL,
)
_ANY = r"\x{0}-\x{10FFFF}"
_NOT_LINE = r"\x{0}-\x{9}\x{B}-\x{10FFFF}"


def read_regex(pattern: str, flags: str) -> Tree:
    """Returns the tree of a pattern that is known to be valid. Raises Refused."""
    _check_flags(flags)
    return _Reader(pattern).alternatives(frozenset(flags), 0)


def one_char(character: str, *, is_any_case: bool = False) -> OneOf:
    return OneOf(f"\\x{{{ord(character):x}}}", is_any_case)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def alternatives(self, flags: frozenset[str], depth: int) -> Tree:
        if depth > MAX_LARK_REGEX_DEPTH:
            _refuse("groups nested so deeply")
        options: list[list[Tree]] = [[]]
        while self._peek() not in ("", ")"):
            if self._peek() == "|":
                self._at += 1
                options.append([])
                continue
            atom, flags = self._atom(flags, depth)
            options[-1].append(self._repeated(atom))
        found = [parts[0] if len(parts) == 1 else Series(tuple(parts)) for parts in options]
        return found[0] if len(found) == 1 else Options(tuple(found))

    def _repeated(self, tree: Tree) -> Tree:
        while True:
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
            if bounds is not None:
                self._at += 1
            elif (count := _COUNT.match(self._text, self._at)) is not None:
                self._at = count.end()
                least = int(count[1])
                bounds = (least, int(count[3]) if count[3] else None if count[2] else least)
            else:
                return tree
            if self._peek() == "?":
                self._at += 1
            tree = Times(tree, *bounds)

    def _atom(self, flags: frozenset[str], depth: int) -> tuple[Tree, frozenset[str]]:
        character = self._peek()
        is_any_case = "i" in flags
        match character:
            case "(":
                return self._group(flags, depth)
            case "[":
                return OneOf(self._class(), is_any_case), flags
            case ".":
                self._at += 1
                return OneOf(_ANY if "s" in flags else _NOT_LINE), flags
            case "^" | "$":
                _refuse("an anchor")
            case "\\":
                return OneOf(self._escape(), is_any_case), flags
        self._at += 1
        return one_char(character, is_any_case=is_any_case), flags

    def _group(self, flags: frozenset[str], depth: int) -> tuple[Tree, frozenset[str]]:
        self._at += 1
        inner = flags
        if self._peek() == "?":
            found = _GROUP.match(self._text, self._at)
            if found is None:
                _refuse("such a group")
            self._at = found.end()
            if found[3]:
                _check_flags(found[1] or "")
                inner = (flags | set(found[1] or "")) - set(found[2] or "")
            if found[3] == ")":
                return EMPTY, inner
        tree = self.alternatives(inner, depth + 1)
        self._at += 1
        return tree, flags

    def _class(self) -> str:
        """Returns the whole class, brackets and all: a class within brackets is a class."""
        start, depth = self._at, 0
        while True:
            character = self._peek()
            if character == "\\":
                self._escape()
                continue
            self._at += 1
            if character == "[":
                depth += 1
                self._at += self._text.startswith("^", self._at)
                if self._text.startswith(":", self._at):
                    self._at = self._text.index(":]", self._at)
                self._at += self._text.startswith("]", self._at)
            elif character == "]":
                depth -= 1
            if depth == 0 or not character:
                return _in_lark(self._text[start : self._at])

    def _escape(self) -> str:
        found = _ESCAPE.match(self._text, self._at)
        if found is None:
            _refuse(f"{self._text[self._at : self._at + 2]} in a regular expression")
        self._at = found.end()
        return _in_lark(found[0])


def _check_flags(flags: str) -> None:
    if set(flags) - set("imsu"):
        _refuse("such a flag of a regular expression")


def _in_lark(text: str) -> str:
    """Spells what would end a regular expression in Lark, or a line of it."""
    text = re.sub(r"\\([/\n\r])", lambda found: f"\\x{{{ord(found[1]):x}}}", text)
    return re.sub(r"[/\n\r]", lambda found: f"\\x{{{ord(found[0]):x}}}", text)


def _refuse(what: str) -> NoReturn:
    raise unsupported(f"{what} is not enforced in a grammar inside a call")
