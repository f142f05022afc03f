"""The `Chooser` port: from logits to tokens. The sampler is one; the scripted engine's player is another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.core.backend import StepLogits
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest


@dataclass(frozen=True, slots=True)
class ChooseRow:
    """A sequence that is due a token. `row` indexes `StepLogits.values`; `num_generated` counts tokens before it.

    `draft_ids` are guesses of this token and of those behind it: row `row + i` was computed as if the first `i` of
    them were right.
    """

    key: int
    row: int
    num_generated: int
    draft_ids: Sequence[int] = ()


@dataclass(slots=True)
class Chosen:
    """What one sequence gets. Several tokens stand in order; a `finish` applies after the last of them.

    `finish` and `error` are set by choosers that end a sequence by themselves. `resume_after_s` asks the scheduler to
    leave the sequence alone for that long.
    """

    token_ids: list[int]
    logprobs: list[TokenLogprob] | None = None
    finish: EngineFinish | None = None
    error: str | None = None
    resume_after_s: float = 0.0


class Chooser(Protocol):
    """Holds whatever a sequence needs between steps, under a key that is never used twice."""

    def open(self, key: int, request: InferenceRequest, choice: int, grammar: GrammarOrder | None = None) -> None:
        """Prepares for one choice of a request. `grammar`: the request's, compiled or on its way."""
        ...

    def is_ready(self, key: int) -> bool:
        """Whether the next token could be chosen now. False while it needs a grammar that is still on its way."""
        ...

    def choose(self, rows: Sequence[ChooseRow], logits: StepLogits) -> list[Chosen]:
        """Returns one `Chosen` for each row. Never raises for one row's sake: that row gets `finish` FAILED.

        A row with drafts gets a token from each of its rows of logits in turn, up to and including the first that is
        not the draft of its place. Each is chosen as if it were due alone: drafts change the number of tokens of a
        step and nothing else. What was chosen and then not kept shows in `num_generated` of the next call.
        """
        ...

    def score_prompt(
        self, key: int, first_row: int, token_ids: Sequence[int], logits: StepLogits
    ) -> list[TokenLogprob]:
        """Scores `token_ids[i]` by the logits of row `first_row + i`, with the request's number of alternatives."""
        ...

    def close(self, key: int) -> None:
        """Forgets a sequence. Idempotent."""
        ...
