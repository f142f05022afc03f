"""Terminals of a caller's grammar as raw text that a marker ends.

No marker is complete before the end, also not across lexemes: each terminal has a form for each state of the markers
(`marker_states.py`) where it begins and ends. A lexer takes the longest lexeme, so where a terminal could also take the
beginning of the end marker, it has a form with the whole marker behind it, which is the last one.
"""

from collections.abc import Hashable

from tidegate.grammar.char_oracle import CharOracle, class_of
from tidegate.grammar.lark_text import LarkText
from tidegate.grammar.lark_tree import LarkGrammar, Name
from tidegate.grammar.marker_states import MarkerStates, State
from tidegate.grammar.tree_states import TreeMachine, ends_of, goes_on, machine_of
from tidegate.grammar.tree_writer import TreeWriter

ENDED = "\0ended"
"""The place behind the end marker."""


class MarkedLark:
    """`end`: the marker that is spelled behind the text; "" where a control token stands there."""

    def __init__(self, text: LarkText, grammar: LarkGrammar, states: MarkerStates, end: str) -> None:
        self._text = text
        self._grammar = grammar
        self._states = states
        self._end = end
        self._oracle = CharOracle(states.characters)
        self._writer = TreeWriter(class_of, self._terminal)
        self._terminals: dict[str, str | None] = {}
        self._machines: dict[str, TreeMachine] = {}
        self._greedy: dict[str, bool] = {}
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
        found: dict[Hashable, str] = {}
        for end in sorted(ends - {None}, key=repr):
            found[end] = self._kept(whole, place, end, is_free=ends == {end} and not is_broken)
        if self._end and self._is_greedy(name):
            found[ENDED] = self._text.terminal(self._states.ended(whole, place, self._end))
        return found

    def _kept(self, whole: str, begin: State, end: State, *, is_free: bool) -> str:
        if is_free:
            return whole
        return self._text.terminal(" & ".join([f"({whole})", *self._states.between(begin, end)]))

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
            rivals = [other for other in self._grammar.terminals if first in self._later(other)]
            self._greedy[name] = any(goes_on(self._machine(name), self._machine(other), first) for other in rivals)
        return self._greedy[name]

    def _later(self, name: str) -> frozenset[str]:
        machine = self._machine(name)
        return frozenset(c for moves in machine.moves for held, _ in moves for c in held)
