"""Which prompts are pooled next, and when a batch of them may stand between two steps of the streams.

Decides:
1. Order: by place in line (`TurnRule`), then arrival. Nothing passes a prompt that does not fit into the batch.
2. Size: alone, as many prompts as a batch of the backend holds. While sequences live, one share of tokens, or a single
   prompt where that is longer: no prompt can be cut.
3. Turns: each step of the streams earns a share, and a batch spends its tokens. While streams are due, a batch needs
   that nothing is owed; so batches get one share for each step, however long single prompts are, and streams wait for
   at most one batch between two of their steps. Earnings are not saved up.

Does not know what lives besides, backends, or clocks.
"""

from dataclasses import dataclass, field
from enum import Enum, unique

from tidegate.core.sequence import Order
from tidegate.core.waiting import WaitingQueue
from tidegate.errors import InternalError
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.request import InferenceRequest


@unique
class Streams(Enum):
    """What the sequences that generate are doing."""

    ABSENT = "absent"
    IDLE = "idle"
    """Some live, and none has anything to do now."""
    DUE = "due"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bounds of a batch, in tokens and prompts; `share_tokens` is its bound beside streams."""

    max_tokens: int
    max_inputs: int
    share_tokens: int


@dataclass(eq=False, slots=True)
class PooledInput:
    """One prompt that waits, at `place` in line. `key` is never used twice; it is left alone until `not_before`."""

    key: int
    request: InferenceRequest
    task: PoolingTask
    arrived_at: float
    not_before: float
    place: float
    is_held: bool = False
    order: Order = field(init=False)

    def __post_init__(self) -> None:
        self.order = (self.place, self.key, 0)


class PoolingBatches:
    """Owns the prompts that wait. Every one is in exactly one place: waiting, or parked because it is held."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._owed_tokens = 0
        self.inputs: dict[str, PooledInput] = {}
        self.waiting: WaitingQueue[PooledInput] = WaitingQueue()
        self.parked: dict[int, PooledInput] = {}

    def enter(self, item: PooledInput) -> None:
        """Takes a prompt under its request's id, which nobody else has."""
        self.inputs[item.request.request_id] = item
        self.waiting.add(item)

    def leave(self, item: PooledInput) -> None:
        """Forgets a prompt that is waiting or parked."""
        del self.inputs[item.request.request_id]
        if self.parked.pop(item.key, None) is None:
            self.waiting.remove(item)

    def hold(self, item: PooledInput, *, held: bool) -> None:
        """Parks a prompt, or lets it wait again in its old order."""
        if item.is_held == held:
            return
        item.is_held = held
        if held:
            self.waiting.remove(item)
            self.parked[item.key] = item
        else:
            del self.parked[item.key]
            self.waiting.add(item)

    def has_due(self, now: float) -> bool:
        """Whether the time of a waiting prompt has come."""
        return bool(len(self.waiting)) and self.waiting.first(now)[0] is not None

    def next_wake_at(self, now: float) -> float | None:
        """Returns `now` when a prompt is due, a later instant, or None."""
        return now if self.has_due(now) else self.waiting.next_due_at(now)

    def take(self, now: float, streams: Streams) -> list[PooledInput]:
        """Takes the next batch out of the queue: prompts of one task. Empty: not now."""
        if streams is Streams.DUE and self._owed_tokens > 0:
            return []
        limits = self._limits
        max_tokens = limits.max_tokens if streams is Streams.ABSENT else min(limits.share_tokens, limits.max_tokens)
        batch: list[PooledInput] = []
        num_tokens = 0
        while len(batch) < limits.max_inputs:
            item, _ = self.waiting.first(now)
            if item is None or (batch and item.task is not batch[0].task):
                break
            if batch and num_tokens + item.request.num_prompt_tokens > max_tokens:
                break
            num_tokens += item.request.num_prompt_tokens
            self.leave(item)
            batch.append(item)
        self._owed_tokens = num_tokens if streams is Streams.DUE else 0
        return batch

    def earn(self) -> None:
        """Counts a step of the streams."""
        self._owed_tokens = max(0, self._owed_tokens - self._limits.share_tokens)

    def check_integrity(self) -> None:
        """Raises InternalError unless each prompt is in one place."""
        for item in self.inputs.values():
            places = (item in self.waiting) + (item.key in self.parked)
            if places != 1 or item.is_held != (item.key in self.parked):
                raise InternalError(f"pooled prompt {item.key} is in {places} places")
        if len(self.inputs) != len(self.waiting) + len(self.parked):
            raise InternalError("pooled prompts that have ended are still listed")
