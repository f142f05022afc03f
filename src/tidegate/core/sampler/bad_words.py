"""Token sequences that must not be completed."""

from collections.abc import Sequence


class BadWords:
    """Says which tokens would complete a forbidden sequence.

    The beginning of a sequence may lie in the prompt: what counts is that the sequence does not come to stand in the
    text. A sequence of one token is always forbidden.
    """

    def __init__(self, sequences: Sequence[tuple[int, ...]]) -> None:
        self._always = sorted({sequence[0] for sequence in sequences if len(sequence) == 1})
        self._after: dict[int, list[tuple[list[int], int]]] = {}
        for sequence in sequences:
            if len(sequence) > 1:
                self._after.setdefault(sequence[-2], []).append((list(sequence[:-1]), sequence[-1]))
        self.max_prefix = max((len(sequence) - 1 for sequence in sequences), default=0)
        """The most tokens of the past that a decision needs."""

    def forbidden(self, past: list[int]) -> list[int]:
        """Returns the ids that may not come next after `past`, oldest token first."""
        found = list(self._always)
        if past:
            for prefix, last in self._after.get(past[-1], ()):
                if past[-len(prefix) :] == prefix:
                    found.append(last)
        return found
