"""The `Backend` port: a forward pass under our scheduler."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.core.plan import StepPlan

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BackendCaps:
    """What a backend can do, fixed for its life. `logit_tolerance` is 0.0 where batching never changes results."""

    vocab_size: int
    max_model_len: int
    max_sequences: int
    max_step_tokens: int
    num_blocks: int
    block_tokens: int
    eos_token_ids: tuple[int, ...]
    can_share: bool
    can_truncate: bool
    logit_tolerance: float
    weights_digest: str
    build: str
    max_pass_rows: int | None = None
    """Rows of logits that one forward pass returns; a step that wants more takes several. None: as many as tokens."""
    num_seq_ids: int | None = None
    """Sequence ids that exist. `max_sequences` of them may be in one step, all may hold tokens. None: as many."""
    has_ordered_ids: bool = False
    """Whether a step is faster when the sequence ids in it are consecutive. Sharing then copies."""
    generates: bool = True
    """Whether tokens can be generated at all; where not, `execute` is never called."""
    memory: str | None = None
    """The budget of memory, in lines for people; None where nothing is budgeted."""


@dataclass(slots=True)
class StepLogits:
    """Logits of one step, borrowed: valid until the next `execute`.

    `values[i]` belongs to `rows[i]`, a pair (sequence id, position of the token that was fed). Rows stand in the
    order of the plan: decode rows first, each with its drafts, then prefill slices, each slice's wanted positions.
    """

    rows: list[tuple[int, int]]
    values: Float32Array


class Backend(Protocol):
    """A forward pass with a cache of keys and values, addressed by sequence id and position."""

    @property
    def caps(self) -> BackendCaps: ...

    def execute(self, plan: StepPlan) -> StepLogits:
        """Carries out the plan's moves, then one forward pass over its tokens.

        Raises BackendError when the pass failed; the state of the cache is then unknown and the process must end.
        """
        ...

    def close(self) -> None:
        """Gives back what the backend holds. Idempotent."""
        ...


class BackendError(Exception):
    """A forward pass failed."""
