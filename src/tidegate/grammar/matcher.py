"""The ports of structured output: a compiler for each tokenizer, and a machine for each sequence.

A machine follows one sequence and decides which tokens may come next; it knows no logits and no text. Its rules, which
`testing/check_matcher.py` checks for every backend:
- `accept` moves by all of its tokens or fails. A failure is sticky: the error stays, every mask is empty, nothing
  raises. It is one sequence's affair and never the step's.
- `rollback(k)` returns to the state before the last k accepted tokens, bit for bit. It does not cure an error.
- An end token is accepted where the text so far is complete, and only there.
- After the end token, or where only an end token could follow, `is_terminated` is true.
- A row without any bit is a dead end: no token of this vocabulary continues the text. It is not an error.

`compile` may be called by several threads at once; all else of a compiler, and a machine, is used by one thread at a
time. Compiled grammars may be shared by all threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.grammar.mask_buffer import MaskWords
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import GrammarSpec


@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vocabulary as grammars see it. `tokens[i]` are the bytes that token i adds to the output.

    Control tokens (`special_ids`, the end tokens among them) stand for no text: no grammar of text allows them.
    `eos_ids` is not empty, the main end token first.
    """

    tokens: Sequence[bytes]
    special_ids: frozenset[int]
    eos_ids: tuple[int, ...]


class GrammarMatcher(Protocol):
    """The machine of one sequence."""

    def accept(self, token_ids: Sequence[int]) -> bool:
        """Moves on by these tokens. False, and an error from then on, when one of them may not come."""
        ...

    def rollback(self, num_tokens: int) -> None:
        """Goes back by that many accepted tokens. More than there are is an error of this machine."""
        ...

    def legal_prefix(self, token_ids: Sequence[int]) -> int:
        """Returns how many of these tokens could be accepted from here, in this order; changes nothing."""
        ...

    @property
    def is_terminated(self) -> bool:
        """The text is complete and nothing can be added to it. False after an error."""
        ...

    @property
    def error(self) -> str | None:
        """Why this machine stopped working, or None."""
        ...


@dataclass(frozen=True, slots=True)
class MaskRow:
    """Fill `row` for what follows the machine's text, and row + i for what follows the first i draft tokens."""

    matcher: GrammarMatcher
    row: int
    draft_ids: Sequence[int] = ()


class CompiledGrammar(Protocol):
    """A grammar that compiled: machines at its beginning."""

    def make_matcher(self) -> GrammarMatcher: ...

    @property
    def num_bytes(self) -> int:
        """About how much memory keeping this costs, for a bounded cache."""
        ...


class GrammarCompiler(Protocol):
    """One backend for one tokenizer."""

    @property
    def identity(self) -> str:
        """Backend and version, as in `llguidance 1.9.1`: part of every key under which a compiled grammar is kept."""
        ...

    def compile(self, spec: GrammarSpec) -> CompiledGrammar | GrammarRefusal:
        """Compiles, or says why not. Never raises for what a spec says; bounded in memory, not in time."""
        ...

    def register(self, words: MaskWords) -> None:
        """Takes the buffer that `fill` writes into from now on. Raises ValueError for a wrong shape or type."""
        ...

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        """Writes masks into the rows listed and touches no other one.

        Returns for each entry how many of its draft tokens are legal in a row: masks are written up to and including
        the row behind the last legal one. The machines are left as they were. Raises ValueError before anything is
        written when no buffer is registered, a row lies outside it, or two entries want the same row.
        """
        ...
