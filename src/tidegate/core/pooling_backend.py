"""The `PoolingBackend` port: prompts that are only read, each made into one vector."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.core.backend import Float32Array
from tidegate.inference.pooling import PoolingInfo, PoolingMode, PoolingTask


@dataclass(frozen=True, slots=True)
class PoolingCaps:
    """What a backend can read, fixed for its life.

    A batch holds at most `max_batch_inputs` prompts, and `max_batch_tokens` tokens of them together, or a single prompt
    of at most `info.max_input_tokens`. `tolerance` is the largest difference of one number of a vector that the other
    prompts of its batch may make, as a part of the vector's length, or of 1.0 where that is shorter; 0.0 where they
    make none.
    """

    info: PoolingInfo
    vocab_size: int
    max_batch_tokens: int
    max_batch_inputs: int
    tolerance: float

    def width_of(self, task: PoolingTask) -> int | None:
        """Returns how many numbers the task's vectors have; None where the model does not serve the task."""
        is_ranking = self.info.mode is PoolingMode.RANK
        if task is PoolingTask.EMBED:
            return None if is_ranking else self.info.dimensions
        return len(self.info.labels) if is_ranking else None


class PoolingBackend(Protocol):
    """A forward pass that keeps nothing from one batch to the next."""

    @property
    def caps(self) -> PoolingCaps: ...

    def pool(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> Float32Array:
        """Returns one vector for each prompt, in their order: shape [prompts, width of the task], as the model gives
        them, not scaled. The array is the caller's.

        The batch keeps within the caps, no prompt is empty, and the model serves the task. Raises PoolingError when
        nothing was computed and a later batch may be, BackendError when the pass failed; the process must then end.
        """
        ...

    def close(self) -> None:
        """Gives back what the backend holds. Idempotent."""
        ...


class PoolingError(Exception):
    """A batch was not pooled, and nothing is broken. The message is for callers."""
