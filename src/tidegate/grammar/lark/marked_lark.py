"""Terminals of a caller's grammar as raw text that a marker ends.

No marker is complete before the end, also not across lexemes: each terminal has a form for each state of the markers
(`marker_states.py`) where it begins and ends. A lexer takes the longest lexeme, so where a terminal could also take the
beginning of the end marker, it has a form with the whole marker behind it, which is the last one.
"""

from collections.abc import Hashable

from tidegate.grammar.lark.char_oracle import SINGLE, CharOracle, class_of
from tidegate.grammar.lark.lark_follow import LAST, Followers
from tidegate.grammar.lark.lark_text import LarkText, literal
from tidegate.grammar.lark.lark_tree import LarkGrammar, Name, OneOf, Options, Series, Times, Tree
from tidegate.grammar.lark.marker_states import MarkerStates, State
from tidegate.grammar.lark.tree_states import TreeMachine, ends_of, first_characters, goes_on, machine_of, prefixes_of
from tidegate.grammar.lark.tree_writer import TreeWriter

ENDED = "\0ended"
"""The place behind the end marker."""

MAX_LITERALS = 128
"""Characters beside those of the markers by which terminals are told apart."""


class MarkedLark:
    """`end`: the marker that is spelled behind the text; "" where a control token stands there."""

    def __init__(self, text: LarkText, grammar: LarkGrammar, states: MarkerStates, end: str) -> None:
        self._text = text
        self._grammar = grammar
        self._states = states
        self._end = end
        self._oracle = CharOracle("".join(sorted({*states.characters, *_literals(grammar)})))
        self._writer = TreeWriter(class_of, self._terminal)
        self._terminals: dict[str, str | None] = {}
        self._machines: dict[str, TreeMachine] = {}
        self._greedy: dict[str, bool] = {}
        self._firsts: dict[str, frozenset[str]] = {}
        self._followers = Followers(grammar)
        self._behind = self._followers.behind
        self.start: Hashable = states.start

    def variants(self, name: str, place: Hashable) -> dict[Hashable, str]:
        """Returns the terminal's forms from a place that are not empty, by the places where they end."""
        if place == ENDED:
            return {}
        assert place is None or isinstance(place, str)
        whole = self._terminal(name)
        if whole is None:
            return {}
        if self._grammar.is_empty(Name(name)):
            whole = self._text.terminal(f"({whole}) & /(?s:.+)/")
        ends, is_broken = ends_of(self._machine(name), self._states, place)
        groups: dict[State, set[State]] = {}
        for end in ends - {None}:
            groups.setdefault(self._as_good_as(name, end), set()).add(end)
        found: dict[Hashable, str] = {}
        for end, members in sorted(groups.items(), key=repr):
            one = None if len(groups) == 1 else frozenset(members)
            is_free = one is None and not is_broken
            found[end] = whole if is_free else self._kept(whole, self._states.between(place, one))
        if self._end and LAST in self._behind[name] and self._is_greedy(name):
            found[ENDED] = self._text.terminal(self._states.ended(whole, place, self._end))
        return found

    def marker(self) -> str:
        """Returns the expression of the end marker, behind a text whose terminals are not greedy for it.

        Where the grammar could read on from there, a lexer would take the terminals of that: so the marker is spelled
        by characters, and by each piece that is a whole text of a terminal that may stand there.
        """
        end = self._end
        pieces = {(i, i + 1) for i in range(len(end))}
        alive: list[set[str]] = [set() for _ in range(len(end) + 1)]
        alive[0] = set().union(*(self._behind[name] for name in self._grammar.terminals if LAST in self._behind[name]))
        for i in range(len(end)):
            for name in sorted(alive[i] - {LAST}):
                for j in prefixes_of(self._machine(name), end, i):
                    pieces.add((i, j))
                    alive[j] |= self._behind[name]
        rules = [self._text.reserve() for _ in end]
        for i, rule in enumerate(rules):
            options = [(literal(end[i:j]), rules[j] if j < len(end) else "") for k, j in sorted(pieces) if k == i]
            self._text.define(rule, " | ".join(f"{piece} {rest}".strip() for piece, rest in options))
        return rules[0]

    def _as_good_as(self, name: str, state: State) -> State:
        if name not in self._firsts:
            behind = [other for other in self._behind[name] if other != LAST]
            firsts = [first_characters(self._machine(other)) for other in behind]
            self._firsts[name] = frozenset().union(*firsts)
        end = self._end if LAST in self._behind[name] else ""
        return self._states.fallback(state, self._firsts[name], end)

    def _kept(self, whole: str, clauses: list[str]) -> str:
        return self._text.terminal(" & ".join([f"({whole})", *clauses]))

    def _terminal(self, name: str) -> str | None:
        if name not in self._terminals:
            piece = self._writer.write(self._grammar.terminals[name])
            self._terminals[name] = None if piece is None else self._text.terminal(piece.in_lark())
        return self._terminals[name]

    def _machine(self, name: str) -> TreeMachine:
        if name not in self._machines:
            self._machines[name] = machine_of(self._grammar, name, self._oracle)
        return self._machines[name]

    def _is_greedy(self, name: str) -> bool:
        """Whether a lexer could take the end marker's first character behind a text of this terminal."""
        if name not in self._greedy:
            first = self._end[0]
            rivals = [other for other in self._followers.beside(name) if first in self._characters(other)]
            self._greedy[name] = any(goes_on(self._machine(name), self._machine(other), first) for other in rivals)
        return self._greedy[name]

    def _characters(self, name: str) -> frozenset[str]:
        machine = self._machine(name)
        return frozenset(c for moves in machine.moves for held, _ in moves for c in held)


def _literals(grammar: LarkGrammar) -> set[str]:
    """Returns single characters that terminals are made of: they tell terminals apart."""
    found: set[str] = set()
    waiting: list[Tree] = list(grammar.terminals.values())
    while waiting and len(found) < MAX_LITERALS:
        match waiting.pop():
            case OneOf(inside):
                found |= {chr(int(single[1], 16))} if (single := SINGLE.fullmatch(inside)) else set()
            case Series(parts) | Options(parts):
                waiting += parts
            case Times(part, _, _):
                waiting.append(part)
            case _:
                pass
    return found
