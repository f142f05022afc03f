"""What every `PoolingBackend` must do, as functions that take one and raise AssertionError.

Within the tolerance that a backend declares, a vector depends on its own prompt alone: not on its batch, on its place
there, or on what was read before. Run all with `check_pooling(make)`, or one by one from `POOLING_CHECKS`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.pooling_backend import PoolingBackend
from tidegate.inference.pooling import PoolingMode, PoolingTask

PoolingFactory = Callable[[], PoolingBackend]


def check_caps(backend: PoolingBackend) -> None:
    """Sizes are positive, the longest prompt fits into a batch, and the model serves exactly one task."""
    caps = backend.caps
    assert min(caps.vocab_size, caps.max_batch_inputs, caps.info.max_input_tokens, caps.info.dimensions) >= 1, caps
    assert caps.tolerance >= 0.0
    assert bool(caps.info.labels) == (caps.info.mode is PoolingMode.RANK), "labels belong to a classification head"
    widths = [caps.width_of(task) for task in PoolingTask]
    assert sorted(width is None for width in widths) == [False, True], f"widths {widths}"
    assert caps == backend.caps, "caps are not fixed"


def check_shape(backend: PoolingBackend) -> None:
    """One finite vector for each prompt, of the declared width; the array stays the caller's."""
    task = _task_of(backend)
    prompts = _prompts(backend, 3)
    first = backend.pool(prompts, task)
    assert first.shape == (3, backend.caps.width_of(task)), first.shape
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    kept = first.copy()
    backend.pool(_prompts(backend, 3, salt=7), task)
    assert np.array_equal(first, kept), "a later batch changed an earlier one's array"


def check_batching(backend: PoolingBackend) -> None:
    """Neighbours, their number and the order of a batch change nothing; token ids may come as a view."""
    task = _task_of(backend)
    prompts = _prompts(backend, min(5, backend.caps.max_batch_inputs))
    alone = [_pool_one(backend, prompt, task) for prompt in prompts]
    for order in (range(len(prompts)), reversed(range(len(prompts)))):
        places = list(order)
        views = [memoryview(np.array(prompts[place], dtype="<u4").tobytes()).cast("I") for place in places]
        for place, vector in zip(places, backend.pool(views, task), strict=True):
            _assert_near(backend, alone[place], vector, f"prompt {place} in a batch")
    _assert_near(backend, alone[0], _pool_one(backend, prompts[0], task), "the same prompt again")


def check_order_of_tokens(backend: PoolingBackend) -> None:
    """Every prompt has a vector of its own."""
    task = _task_of(backend)
    vectors = backend.pool(_prompts(backend, 2), task)
    assert not np.array_equal(vectors[0], vectors[1]), "two prompts have one vector"


def check_largest_batches(backend: PoolingBackend) -> None:
    """The longest prompt, and the largest number of prompts, are taken."""
    caps, task = backend.caps, _task_of(backend)
    longest = _tokens(backend, caps.info.max_input_tokens, salt=3)
    assert np.isfinite(_pool_one(backend, longest, task)).all(), "the longest prompt"
    length = max(1, min(4, caps.max_batch_tokens // caps.max_batch_inputs))
    prompts = [_tokens(backend, length, salt=20 + index) for index in range(caps.max_batch_inputs)]
    prompts = prompts[: caps.max_batch_tokens // length]
    vectors = backend.pool(prompts, task)
    for index in (0, len(prompts) - 1):
        _assert_near(
            backend, _pool_one(backend, prompts[index], task), vectors[index], f"prompt {index} of a full batch"
        )


POOLING_CHECKS: tuple[Callable[[PoolingBackend], None], ...] = (
    check_caps,
    check_shape,
    check_batching,
    check_order_of_tokens,
    check_largest_batches,
)


def check_pooling(make: PoolingFactory, checks: Sequence[Callable[[PoolingBackend], None]] = POOLING_CHECKS) -> None:
    """Makes one backend, runs `checks` on it in turn, and closes it twice."""
    backend = make()
    try:
        for check in checks:
            check(backend)
    finally:
        backend.close()
        backend.close()


def _task_of(backend: PoolingBackend) -> PoolingTask:
    return next(task for task in PoolingTask if backend.caps.width_of(task) is not None)


def _pool_one(backend: PoolingBackend, prompt: Sequence[int], task: PoolingTask) -> Float32Array:
    return np.array(backend.pool([prompt], task)[0])


def _prompts(backend: PoolingBackend, count: int, *, salt: int = 1) -> list[list[int]]:
    """Returns prompts of rising length that fit into one batch."""
    caps = backend.caps
    longest = max(1, min(caps.info.max_input_tokens, caps.max_batch_tokens // count))
    return [_tokens(backend, min(longest, 3 + 5 * index), salt=salt + index) for index in range(count)]


def _tokens(backend: PoolingBackend, length: int, *, salt: int) -> list[int]:
    """Returns tokens that are always the same for the same arguments."""
    state, tokens = salt * 2654435761 + 12345, list[int]()
    while len(tokens) < length:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        tokens.append((state >> 33) % backend.caps.vocab_size)
    return tokens


def _assert_near(backend: PoolingBackend, expected: Float32Array, actual: Float32Array, what: str) -> None:
    distance = float(np.max(np.abs(expected - actual)))
    allowed = backend.caps.tolerance * max(1.0, float(np.linalg.norm(expected)))
    assert distance <= allowed, f"{what}: numbers differ by {distance}, allowed {allowed}"
