"""llguidance's machine behind the port `GrammarMatcher`.

Four things of llguidance are not passed on as they are. It takes no end token where only an end token could follow:
ends are kept here. A dead end is an error to it, which no rollback cures: the machine is then built again from its
grammar and its tokens, so that a draft that runs into a dead end costs nothing. And it offers an end token in the mask
of a failed machine: such a row is emptied here. That only the empty text is allowed it does not know before a token
came: the compiler finds out.
"""

from collections.abc import Sequence

import llguidance
import numpy as np

from tidegate.grammar.mask_buffer import MaskWords

_DEAD_END = "NoExtensionBias"
"""What llguidance says of a machine that no token moves on. Any other error is one of its limits, or a fault."""


class LlguidanceMatcher:
    """One sequence. `base` is a machine at its beginning, which is copied and never moved.

    `has_no_text`: only the empty text is allowed.
    """

    def __init__(self, base: llguidance.LLMatcher, eos_ids: frozenset[int], *, has_no_text: bool = False) -> None:
        self._base = base
        self._has_no_text = has_no_text
        self._machine = base.deep_copy()
        self._eos_ids = eos_ids
        self._accepted: list[int] = []
        self._has_ended = False
        self._error: str | None = None

    def accept(self, token_ids: Sequence[int]) -> bool:
        if self._error is not None:
            return False
        if self.legal_prefix(token_ids) < len(token_ids):
            self._error = "a token that the grammar does not allow"
            return False
        self._move(token_ids)
        return True

    def rollback(self, num_tokens: int) -> None:
        if self._error is not None or num_tokens == 0:
            return
        if not 0 < num_tokens <= len(self._accepted):
            self._error = "more tokens taken back than were accepted"
            return
        in_machine = num_tokens - self._has_ended
        self._has_ended = False
        del self._accepted[len(self._accepted) - num_tokens :]
        if in_machine and not self._machine.rollback(in_machine):
            self._rebuild()

    def legal_prefix(self, token_ids: Sequence[int]) -> int:
        if self._error is not None or self._has_ended:
            return 0
        ids = list(token_ids)
        end = next((i for i, token_id in enumerate(ids) if token_id in self._eos_ids), None)
        text = ids[:end]
        legal = 0 if self._machine.is_error() else int(self._machine.validate_tokens(text))
        if legal < len(text) or end is None:
            return legal
        return legal + self._is_complete_behind(text)

    @property
    def is_terminated(self) -> bool:
        if self._error is not None:
            return False
        if self._has_no_text or self._has_ended:
            return True
        return bool(self._machine.is_stopped() and self._machine.is_accepting())

    @property
    def error(self) -> str | None:
        return self._error

    def fill(self, words: MaskWords, row: int, draft_ids: Sequence[int]) -> int:
        """Fills `row` and those behind it for the legal tokens of a draft; returns how many are legal."""
        legal = self.legal_prefix(draft_ids)
        self._fill_row(words[row])
        for i in range(legal):
            self._move([draft_ids[i]])
            self._fill_row(words[row + 1 + i])
        self.rollback(legal)
        return legal

    def _fill_row(self, row: MaskWords) -> None:
        if self._error is not None or self._has_ended:
            row[:] = np.uint32(0)
            return
        if not self._machine.is_error():
            self._machine.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        if self._machine.is_error():
            row[:] = np.uint32(0)
            if _DEAD_END not in self._machine.get_error():
                self._error = "the grammar takes too much work for one token"

    def _move(self, token_ids: Sequence[int]) -> None:
        """Moves by tokens that are known to be legal."""
        self._accepted += token_ids
        if self._accepted and self._accepted[-1] in self._eos_ids:
            self._has_ended = True
            token_ids = token_ids[:-1]
        if token_ids:
            self._machine.consume_tokens(list(token_ids))

    def _is_complete_behind(self, text: list[int]) -> bool:
        if not text:
            return bool(self._machine.is_accepting())
        self._machine.consume_tokens(text)
        is_complete = bool(self._machine.is_accepting())
        if not self._machine.rollback(len(text)):
            self._rebuild()
        return is_complete

    def _rebuild(self) -> None:
        self._machine = self._base.deep_copy()
        if self._accepted and not self._machine.consume_tokens(list(self._accepted)):
            self._error = "the grammar backend did not repeat itself"
