"""Terminals of a caller's grammar as they are spelled within the quotes of a JSON string.

A lexer takes the longest lexeme and looks one byte ahead, so a backslash must not say yet whether the text goes on: it
belongs to the lexeme before, and what it escapes to the lexeme behind. There are two places between lexemes, then:
behind a character, and behind a backslash. Each terminal has a form for each place where it begins and ends. Characters
without a short escape are never written.
"""

from collections.abc import Hashable

from tidegate.grammar.lark.char_oracle import CharOracle, class_of
from tidegate.grammar.lark.lark_text import LarkText
from tidegate.grammar.lark.lark_tree import Fixed, LarkGrammar, Name, OneOf, Options, Series, Times, Tree
from tidegate.grammar.lark.tree_writer import TreeWriter

_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", '"': '"', "\\": "\\"}
_SPECIAL = "".join(map(chr, range(0x20))) + '"\\'
_SPECIAL_CLASS = r'\x{0}-\x{1f}"\\'
_BACKSLASH = r"/\\/"
_BEHIND = "'"
"""Before the name of a terminal: its form behind a backslash."""


class EscapedLark:
    """Places: False behind a character, True behind a backslash."""

    start: Hashable = False

    def __init__(self, text: LarkText, grammar: LarkGrammar) -> None:
        self._text = text
        self._grammar = grammar
        self._oracle = CharOracle(_SPECIAL)
        self._writer = TreeWriter(self._leaf, self._terminal)
        self._terminals: dict[str, str | None] = {}
        self._behind: dict[str, Tree | None] = {}
        # Where no terminal can go on with an escape, a backslash always begins a lexeme.
        self._is_split = any(self._goes_on(tree) for tree in grammar.terminals.values())

    def variants(self, name: str, place: Hashable) -> dict[Hashable, str]:
        """Returns the terminal's forms that begin at a place and are not empty, by the places where they end."""
        whole = self._terminal(f"{_BEHIND}{name}" if place else name)
        if whole is None:
            return {}
        if not place and self._grammar.is_empty(Name(name)):
            whole = self._text.terminal(f"({whole}) & /(?s:.+)/")
        found: dict[Hashable, str] = {False: whole}
        if self._is_split:
            found[True] = self._text.terminal(f"{whole} {_BACKSLASH}")
        return found

    def _terminal(self, name: str) -> str | None:
        if name not in self._terminals:
            tree = self._tree_behind(name[1:]) if name.startswith(_BEHIND) else self._grammar.terminals[name]
            piece = None if tree is None else self._writer.write(tree)
            self._terminals[name] = None if piece is None else self._text.terminal(piece.in_lark())
        return self._terminals[name]

    def _leaf(self, one: OneOf) -> str | None:
        held = self._oracle.held(one)
        if not held:
            return class_of(one)
        options = [class_of(one, _SPECIAL_CLASS)] if self._oracle.holds_beyond(one, _SPECIAL_CLASS) else []
        letters = _letters(held)
        options += [rf"\\{letters}"] if letters else []
        return f"(?:{'|'.join(options)})" if options else None

    def _tree_behind(self, name: str) -> Tree | None:
        if name not in self._behind:
            self._behind[name] = self._without_backslash(self._grammar.terminals[name])
        return self._behind[name]

    def _without_backslash(self, tree: Tree) -> Tree | None:
        """Returns what is left of the texts that begin with a backslash, without it."""
        match tree:
            case OneOf():
                letters = _letters(self._oracle.held(tree))
                return Fixed(letters) if letters else None
            case Name(name):
                return None if self._tree_behind(name) is None else Name(f"{_BEHIND}{name}")
            case Options(options):
                found = tuple(left for option in options if (left := self._without_backslash(option)) is not None)
                return Options(found) if found else None
            case Times(part, least, most):
                left = None if most == 0 else self._without_backslash(part)
                rest = Times(part, max(least - 1, 0), None if most is None else most - 1)
                return None if left is None else Series((left, rest))
            case Series(parts):
                return self._series_without(parts)
        return None

    def _series_without(self, parts: tuple[Tree, ...]) -> Tree | None:
        found: list[Tree] = []
        for i, part in enumerate(parts):
            left = self._without_backslash(part)
            if left is not None:
                found.append(Series((left, *parts[i + 1 :])))
            if not self._grammar.is_empty(part):
                break
        return Options(tuple(found)) if found else None

    def _goes_on(self, tree: Tree) -> bool:
        """Whether an escape may stand behind the first character; true where it is not certain."""
        match tree:
            case Series(parts):
                return any(map(self._has_escape, parts[1:])) or any(map(self._goes_on, parts[:1]))
            case Options(options):
                return any(map(self._goes_on, options))
            case Times(part, _, most):
                return self._has_escape(part) if most != 1 else self._goes_on(part)
        return False

    def _has_escape(self, tree: Tree) -> bool:
        match tree:
            case OneOf():
                return bool(self._oracle.held(tree))
            case Name(name):
                return self._has_escape(self._grammar.terminals[name])
            case Series(parts) | Options(parts):
                return any(map(self._has_escape, parts))
            case Times(part, _, _):
                return self._has_escape(part)
        return False


def _letters(held: frozenset[str]) -> str:
    """Returns the class of what stands behind the backslash."""
    found = "".join(f"\\x{{{ord(_LETTERS[c]):x}}}" for c in sorted(held) if c in _LETTERS)
    return f"[{found}]" if found else ""
