"""Choices of which nothing is generated: the prompt is read, and the answer is a vector or a likelihood.

Decides what of the engine's output counts, and that it is sound: a number that is not finite never leaves. Does not
know what the numbers are for.
"""

import math

import numpy as np

from tidegate.contract.logprobs import wire_logprob
from tidegate.errors import InternalError
from tidegate.inference.event import PromptLikelihood, PromptVector, StreamEvent
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob

READ = "read"
"""How such a choice ends well."""


class _ReadChoice:
    """Nothing is generated, so nothing counts."""

    num_tokens = 0
    num_reasoning_tokens = 0

    def __init__(self) -> None:
        self.is_finished = False

    @property
    def outcome(self) -> str | None:
        return READ if self.is_finished else None


class VectorChoice(_ReadChoice):
    """Waits for the pooled vector of one prompt."""

    def feed(self, delta: TokenDelta) -> list[StreamEvent]:
        """Returns the vector. Raises InternalError for one that is empty, or holds what is no finite number."""
        if self.is_finished or delta.finish is not EngineFinish.POOLED:
            return []
        data = delta.pooled or b""
        vector = np.frombuffer(data, "<f4") if data and len(data) % 4 == 0 else None
        if vector is None or not np.isfinite(vector).all():
            raise InternalError(f"the engine gave {len(data)} bytes that are no vector of finite numbers")
        self.is_finished = True
        return [PromptVector(data)]


class LikelihoodChoice(_ReadChoice):
    """Waits for the log-probabilities of a prompt's last `num_scored` tokens."""

    def __init__(self, num_scored: int) -> None:
        super().__init__()
        self._num_scored = num_scored
        self._last: list[TokenLogprob | None] = []

    def feed(self, delta: TokenDelta) -> list[StreamEvent]:
        """Returns their sum, the natural logarithm of the continuation's probability. Raises InternalError."""
        if self.is_finished:
            return []
        if delta.prompt_logprobs is not None:
            self._last = [*self._last, *delta.prompt_logprobs][-self._num_scored :]
        if delta.finish is not EngineFinish.LENGTH:
            return []
        values = [scored.logprob for scored in self._last if scored is not None and not math.isnan(scored.logprob)]
        if len(values) != self._num_scored:
            raise InternalError(f"the engine scored {len(values)} of {self._num_scored} tokens")
        self.is_finished = True
        return [PromptLikelihood(math.fsum(map(wire_logprob, values)))]
