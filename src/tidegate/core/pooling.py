"""Prompts that are only read: taken in, pooled in batches between the steps of the streams, answered with a vector.

A prompt needs no row, block or sampler, and never meets the scheduler. It ends in one delta: POOLED with its vector,
FAILED, or ABORTED. Pure except through its backend. `core/pooling_batches.py` decides when and which.
"""

from dataclasses import dataclass

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.intake import refusal_of
from tidegate.core.pooling_backend import PoolingBackend, PoolingError
from tidegate.core.pooling_batches import BatchLimits, PooledInput, PoolingBatches, Streams
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.pooling import PoolingInfo
from tidegate.inference.request import InferenceRequest
from tidegate.inference.turn_rule import BY_PRIORITY, TurnRule

NOT_SERVED = "this engine does not pool prompts"


@dataclass(frozen=True, slots=True)
class PoolingCounts:
    """Prompts that wait and those that are held; counters of what was pooled, since the start."""

    num_waiting: int = 0
    num_held: int = 0
    num_inputs: int = 0
    num_tokens: int = 0
    num_batches: int = 0


class PoolingDesk:
    """Owns the prompts that are only read, and their outputs until they are taken."""

    def __init__(self, backend: PoolingBackend, share_tokens: int, turns: TurnRule = BY_PRIORITY) -> None:
        """`share_tokens` bounds a batch while sequences live."""
        self._backend = backend
        self._turns = turns
        self._caps = caps = backend.caps
        self._batches = PoolingBatches(BatchLimits(caps.max_batch_tokens, caps.max_batch_inputs, share_tokens))
        self._outputs: list[TokenDelta] = []
        self._next_key = 0
        self._num_inputs = 0
        self._num_tokens = 0
        self._num_batches = 0

    @property
    def info(self) -> PoolingInfo:
        return self._caps.info

    @property
    def has_work(self) -> bool:
        return bool(self._batches.inputs or self._outputs)

    def owns(self, request_id: str) -> bool:
        """Whether a prompt lives under this id."""
        return request_id in self._batches.inputs

    def refusal_of(self, request: InferenceRequest) -> str | None:
        """Returns why the request can never be pooled, or None."""
        assert request.pooling is not None
        if self._caps.width_of(request.pooling) is None:
            return f"this model does not {request.pooling.value}: it pools by {self.info.mode.value}"
        if request.num_choices != 1:
            return f"a prompt that is only read has one result, not {request.num_choices} choices"
        return refusal_of(request, vocab_size=self._caps.vocab_size, max_len=self.info.max_input_tokens)

    def add(self, request: InferenceRequest, now: float) -> None:
        """Takes a request that is not to be refused, under an id that does not live."""
        assert request.pooling is not None
        script = request.script
        delay_s = script.queue_delay_s + script.prefill_delay_s if script is not None else 0.0
        place = self._turns.place(now, request.priority)
        self._batches.enter(PooledInput(self._next_key, request, request.pooling, now, now + delay_s, place))
        self._next_key += 1

    def abort(self, request_id: str, choice: int | None) -> None:
        """Ends a prompt that waits. One that does not live is ignored."""
        item = self._batches.inputs.get(request_id)
        if item is not None and choice in (None, 0):
            self._batches.leave(item)
            self._outputs.append(_delta(item, EngineFinish.ABORTED))

    def hold(self, request_id: str, *, held: bool) -> None:
        """Parks a prompt whose reader is behind, or lets it go on. One that does not live is ignored."""
        item = self._batches.inputs.get(request_id)
        if item is not None:
            self._batches.hold(item, held=held)

    def next_wake_at(self, now: float) -> float | None:
        """Returns `now` when there is something to do, a later instant, or None."""
        return now if self._outputs else self._batches.next_wake_at(now)

    def has_due(self, now: float) -> bool:
        """Whether a prompt could be pooled now."""
        return self._batches.has_due(now)

    def step(self, now: float, streams: Streams) -> list[TokenDelta]:
        """Pools one batch if it is the prompts' turn; returns its outputs. Raises BackendError."""
        batch = self._batches.take(now, streams)
        if not batch:
            return []
        try:
            vectors = self._backend.pool([memoryview(item.request.prompt).cast("I") for item in batch], batch[0].task)
        except PoolingError as error:
            return [_delta(item, EngineFinish.FAILED, error=str(error)) for item in batch]
        self._num_batches += 1
        self._num_inputs += len(batch)
        self._num_tokens += sum(item.request.num_prompt_tokens for item in batch)
        return [_answer(item, vector, now) for item, vector in zip(batch, vectors, strict=True)]

    def earn(self) -> None:
        """Counts a step of the streams."""
        self._batches.earn()

    def take_outputs(self) -> list[TokenDelta]:
        """Returns what ended between steps."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def counts(self) -> PoolingCounts:
        return PoolingCounts(
            num_waiting=len(self._batches.waiting),
            num_held=len(self._batches.parked),
            num_inputs=self._num_inputs,
            num_tokens=self._num_tokens,
            num_batches=self._num_batches,
        )

    def check_integrity(self) -> None:
        """Raises InternalError when a conservation law is broken."""
        self._batches.check_integrity()


def _answer(item: PooledInput, vector: Float32Array, now: float) -> TokenDelta:
    if not np.isfinite(vector).all():
        delta = _delta(item, EngineFinish.FAILED, error="the model gave numbers that are not finite")
    else:
        delta = _delta(item, EngineFinish.POOLED)
        delta.pooled = np.asarray(vector, dtype="<f4").tobytes()
    delta.queue_s = now - item.arrived_at
    return delta


def _delta(item: PooledInput, finish: EngineFinish, *, error: str | None = None) -> TokenDelta:
    request = item.request
    delta = TokenDelta(request.request_id, 0, [], finish, num_prompt_tokens=request.num_prompt_tokens, error=error)
    if request.script is not None:
        delta.num_cached_tokens = request.script.num_cached_tokens
        if request.script.num_prompt_tokens is not None:
            delta.num_prompt_tokens = request.script.num_prompt_tokens
    return delta
