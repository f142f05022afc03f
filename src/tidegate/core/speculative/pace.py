"""How many tokens are guessed for one sequence, by how its guesses fared.

Decides a number for the next step:
- all accepted: twice as many; some: one more than were right; none: half as many.
- At zero the sequence rests for some steps, twice as long each time, then tries one token again. A guess that is right
  ends the resting.

Does not know tokens, the step's budget, or what a guess costs.
"""

FIRST_WISH = 2
FIRST_REST = 4
LONGEST_REST = 64
"""Steps between two tries of a sequence whose guesses are always wrong."""


class DraftPace:
    """One sequence's wish. `max_tokens` is at least 1."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._wish = min(FIRST_WISH, max_tokens)
        self._rest = 0
        self._next_rest = FIRST_REST

    def next_wish(self) -> int:
        """Returns how many tokens to guess in the step that begins. Called once for each step of the sequence."""
        if self._wish == 0:
            self._rest -= 1
            if self._rest < 0:
                self._wish = 1
        return self._wish

    def note(self, num_drafted: int, num_accepted: int) -> None:
        """Takes what became of the guesses of a step that had some."""
        if num_accepted:
            self._next_rest = FIRST_REST
        if num_accepted == num_drafted:
            self._wish = min(self._max_tokens, max(self._wish, 2 * num_drafted))
        elif num_accepted:
            self._wish = min(self._max_tokens, num_accepted + 1)
        else:
            self._wish = min(self._wish, num_drafted) // 2
            if self._wish == 0:
                self._rest = self._next_rest
                self._next_rest = min(2 * self._next_rest, LONGEST_REST)
