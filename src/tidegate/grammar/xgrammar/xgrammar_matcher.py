"""xgrammar's machine behind the port `GrammarMatcher`.

It is asked nothing that it answers with a line on standard error: tokens outside of the vocabulary, control tokens, and
tokens behind an end are refused here. That only an end token could follow is read from a mask, kept for each position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgrammar

from tidegate.grammar.mask_buffer import ALL_ALLOWED, MaskWords


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What machines of one vocabulary share; `scratch` is a row of their thread's own."""

    vocab_size: int
    eos_ids: frozenset[int]
    never_ids: frozenset[int]
    eos_words: MaskWords
    scratch: MaskWords


class XgrammarMatcher:
    """One sequence."""

    def __init__(self, grammar: xgrammar.CompiledGrammar, rules: TokenRules) -> None:
        self._machine = xgrammar.GrammarMatcher(grammar)
        self._rules = rules
        self._num_accepted = 0
        self._has_ended = False
        self._only_end: bool | None = None
        self._error: str | None = None

    def accept(self, token_ids: Sequence[int]) -> bool:
        if self._error is not None:
            return False
        for token_id in token_ids:
            if not self._step(token_id):
                self._error = "a token that the grammar does not allow"
                return False
        return True

    def rollback(self, num_tokens: int) -> None:
        if self._error is not None or num_tokens == 0:
            return
        if not 0 < num_tokens <= self._num_accepted:
            self._error = "more tokens taken back than were accepted"
            return
        self._machine.rollback(num_tokens)
        self._num_accepted -= num_tokens
        self._has_ended = False
        self._only_end = None

    def legal_prefix(self, token_ids: Sequence[int]) -> int:
        if self._error is not None:
            return 0
        kept = self._only_end
        legal = 0
        for token_id in token_ids:
            if not self._step(token_id):
                break
            legal += 1
        self.rollback(legal)
        self._only_end = kept
        return legal

    @property
    def is_terminated(self) -> bool:
        if self._error is not None:
            return False
        if self._has_ended:
            return True
        if self._only_end is None:
            self._only_end = bool(self._machine.is_completed()) and self._allows_only_ends()
        return self._only_end

    @property
    def error(self) -> str | None:
        return self._error

    def fill(self, words: MaskWords, row: int, draft_ids: Sequence[int]) -> int:
        """Fills `row` and those behind it for the legal tokens of a draft; returns how many are legal."""
        if self._error is not None:
            words[row] = np.uint32(0)
            return 0
        kept = self._only_end
        self._fill_row(words, row)
        legal = 0
        for token_id in draft_ids:
            if not self._step(token_id):
                break
            legal += 1
            self._fill_row(words, row + legal)
        self.rollback(legal)
        self._only_end = kept
        return legal

    def _step(self, token_id: int) -> bool:
        if self._has_ended or not 0 <= token_id < self._rules.vocab_size or token_id in self._rules.never_ids:
            return False
        if token_id in self._rules.eos_ids and not self._machine.is_completed():
            return False
        if not self._machine.accept_token(token_id):
            return False
        self._num_accepted += 1
        self._has_ended = token_id in self._rules.eos_ids
        self._only_end = None
        return True

    def _fill_row(self, words: MaskWords, row: int) -> None:
        if self._has_ended:
            words[row] = np.uint32(0)
            return
        words[row] = ALL_ALLOWED
        self._machine.fill_next_token_bitmask(words.view(np.int32), row)

    def _allows_only_ends(self) -> bool:
        scratch = self._rules.scratch
        self._fill_row(scratch, 0)
        return not (scratch[0] & ~self._rules.eos_words).any()
