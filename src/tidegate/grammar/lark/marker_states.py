"""How much of an end marker stands at the end of a text, so that markers are seen across lexemes.

A state is the longest end of the text that begins a marker; "" where there is none. Before the first character the text
may be kept from beginning with `lead`.
"""

from tidegate.grammar.lark.lark_text import any_of, literal, quoted

BEGUN = ""
UNBEGUN = None
BROKEN = "\0broken"
"""A marker is complete, or the text begins as it must not."""

State = str | None


class MarkerStates:
    """Raises nothing. `markers` are not empty; `lead` is one character at most."""

    def __init__(self, markers: tuple[str, ...], lead: str) -> None:
        self.markers = tuple(
            marker for marker in markers if not any(other != marker and other in marker for other in markers)
        )
        self._all = markers
        self._lead = lead
        self.start: State = UNBEGUN if lead else BEGUN
        self._states = sorted({marker[:i] for marker in self.markers for i in range(len(marker))})

    @property
    def characters(self) -> str:
        return "".join(sorted(set("".join(self.markers) + self._lead)))

    def after(self, state: State, character: str) -> State:
        """Returns the next state. `character`: "" for any that stands in no marker."""
        if state is UNBEGUN:
            return BROKEN if character and character == self._lead else self.after(BEGUN, character)
        if not character:
            return BEGUN
        text = state + character
        if any(text.endswith(marker) for marker in self.markers):
            return BROKEN
        return next(text[i:] for i in range(len(text) + 1) if text[i:] in self._states)

    def _walk(self, state: State, text: str) -> State:
        for character in text:
            state = self.after(state, character)
            if state == BROKEN:
                break
        return state

    def may_end(self, state: State, end: str) -> bool:
        """Whether `end`, written behind such a text, is the first marker that is complete, and the longest."""
        if self._walk(state, end[:-1]) == BROKEN:
            return False
        text = (state or "") + end
        return not any(text.endswith(other) and len(other) > len(end) for other in self._all)

    def fallback(self, state: State, characters: frozenset[str], end: str) -> State:
        """Returns the state that such a text is as good as, where only these characters may follow, or `end`.

        `end`: "" where the text does not end there. A state that nothing can lengthen says no more than what it is
        left with when it breaks off.
        """
        while state:
            heads = {other[len(state)] for other in self.markers if other.startswith(state)}
            shorter = next(state[i:] for i in range(1, len(state) + 1) if state[i:] in self._states)
            if heads & characters or (end and self.may_end(state, end) != self.may_end(shorter, end)):
                return state
            state = shorter
        return state

    def between(self, begin: State, ends: frozenset[State] | None) -> list[str]:
        """Returns clauses for a lexeme: texts that lead from one state to one of `ends`, None: to any."""
        clauses = [f"~/(?s:.*){any_of(self.markers)}(?s:.*)/", *self._begins(begin)]
        if ends is None:
            return clauses
        begun = begin or BEGUN
        short = {other[len(tail) :] for tail in _tails(begun) for other in self._states if other.startswith(tail)}
        exact = tuple(sorted(text for text in short if self._walk(begin, text) in ends))
        options = [self._ending(end or BEGUN, tuple(sorted(short))) for end in sorted(ends, key=repr)]
        options += [f"/{any_of(exact)}/"] if exact else []
        return [*clauses, f"({' | '.join(options)})"]

    def _ending(self, end: str, short: tuple[str, ...]) -> str:
        longer = tuple(state for state in self._states if state.endswith(end) and state != end)
        clauses = [f"/(?s:.*){quoted(end)}/"] if end else []
        clauses += [f"~/(?s:.*){any_of(longer)}/"] if longer else []
        clauses += [f"~/{any_of(short)}/"] if short else []
        return f"({' & '.join(clauses) or '/(?s:.*)/'})"

    def ended(self, lexeme: str, begin: State, end: str) -> str:
        """Returns the lexeme with `end` behind it, which is the first complete marker."""
        body = f"({lexeme}) & ~/{quoted(self._lead)}(?s:.*)/" if begin is UNBEGUN else lexeme
        clauses = [f"(({body}) {literal(end)})", f"~/(?s:.*){any_of(self.markers)}(?s:.+)/"]
        longer = tuple(other for other in self._all if other.endswith(end) and other != end)
        clauses += [f"~/(?s:.*){any_of(longer)}/"] if longer else []
        return " & ".join([*clauses, *self._rests(begin)])

    def _begins(self, begin: State) -> list[str]:
        lead = [f"~/{quoted(self._lead)}(?s:.*)/"] if begin is UNBEGUN else []
        return lead + self._rests(begin)

    def _rests(self, begin: State) -> list[str]:
        rests = {m[len(tail) :] for tail in _tails(begin or BEGUN) for m in self._all if m.startswith(tail)}
        return [f"~/{any_of(tuple(sorted(rests)))}(?s:.*)/"] if rests else []


def _tails(text: str) -> list[str]:
    return [text[i:] for i in range(len(text))]
