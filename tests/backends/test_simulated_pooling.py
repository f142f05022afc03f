"""The simulated pooling backend: a PoolingBackend like any other, near for near prompts, and a strict one."""

from collections.abc import Sequence

import numpy as np
import pytest

from tidegate.backends.simulated_pooling import SimulatedPooling
from tidegate.core.backend import BackendError, Float32Array
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.testing.check_pooling import POOLING_CHECKS, check_pooling


@pytest.mark.parametrize("mode", PoolingMode)
@pytest.mark.parametrize("check", POOLING_CHECKS)
def test_every_mode_does_what_every_pooling_backend_must(mode: PoolingMode, check) -> None:  # noqa: ANN001
    check_pooling(lambda: SimulatedPooling(mode), [check])


def test_several_labels_pass_as_well() -> None:
    check_pooling(lambda: SimulatedPooling(PoolingMode.RANK, labels=("bad", "fair", "good")))


class _Leaking(SimulatedPooling):
    """Wrong on purpose: the batch shows in its vectors."""

    def pool(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> Float32Array:
        return super().pool(prompts, task) + np.float32(0.001 * len(prompts))


class _Borrowing(SimulatedPooling):
    """Wrong on purpose: gives out one array again and again."""

    _kept = np.zeros((64, 64), dtype=np.float32)

    def pool(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> Float32Array:
        vectors = super().pool(prompts, task)
        self._kept[: len(vectors)] = vectors
        return self._kept[: len(vectors)]


@pytest.mark.parametrize(("wrong", "fault"), [(_Leaking, "numbers differ"), (_Borrowing, "a later batch")])
def test_the_checker_finds_backends_that_are_wrong(wrong: type[SimulatedPooling], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_pooling(wrong)


def _cosine(backend: SimulatedPooling, first: str, second: str) -> float:
    a, b = backend.pool([list(first.encode()), list(second.encode())], PoolingTask.EMBED)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("mode", [PoolingMode.MEAN, PoolingMode.CLS, PoolingMode.LAST])
def test_texts_with_more_in_common_are_nearer(mode: PoolingMode) -> None:
    backend = SimulatedPooling(mode)
    near = _cosine(backend, "the cat sat on the mat", "the cat sat on a mat")
    assert near > 0.8
    assert near > _cosine(backend, "the cat sat on the mat", "WHO 1234567 XYZ?") + 0.3


def test_a_pair_ranks_higher_the_more_its_parts_have_in_common() -> None:
    backend = SimulatedPooling(PoolingMode.RANK)
    query = [256, *b"where do pandas live", 257]
    pairs = [[*query, *b"pandas live in China", 257], [*query, *b"0123 456-789", 257], query]
    scores = backend.pool(pairs, PoolingTask.CLASSIFY)[:, 0]
    assert scores[0] > scores[1] + 1.0 > scores[2] + 1.0


BAD = [
    ([[]], PoolingTask.EMBED, "empty"),
    ([], PoolingTask.EMBED, "empty"),
    ([[258]], PoolingTask.EMBED, "vocabulary"),
    ([[1]], PoolingTask.CLASSIFY, "does not classify"),
    ([[1]] * 65, PoolingTask.EMBED, "too large"),
    ([[1] * 2049], PoolingTask.EMBED, "too large"),
]


@pytest.mark.parametrize(("prompts", "task", "fault"), BAD, ids=range(len(BAD)))
def test_a_batch_that_breaks_a_rule_is_an_error(prompts: list[list[int]], task: PoolingTask, fault: str) -> None:
    with pytest.raises(BackendError, match=fault):
        SimulatedPooling().pool(prompts, task)


def test_a_batch_costs_what_is_declared() -> None:
    spent: list[float] = []
    SimulatedPooling(elapse=spent.append).pool([[1] * 100, [2] * 100], PoolingTask.EMBED)
    assert spent == [pytest.approx(0.020 + 200 * 0.000035)]
