"""A `PoolingBackend` of arithmetic: vectors that depend on a prompt's own tokens alone, and are near for near prompts.

A prompt's features are the mean of pseudo-random vectors of its tokens and of its pairs of neighbours, so that prompts
with more in common have a larger cosine. `cls` and `last` lean on the first and on the last token. `rank` with one
label scores how much the parts of a prompt have in common, which tokens 256 to 511 (BOS, EOS, ...) divide; with several
labels each has a direction of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.backends.simulated_numbers import mixed
from tidegate.core.backend import BackendError, Float32Array
from tidegate.core.pooling_backend import PoolingCaps
from tidegate.inference.pooling import PoolingInfo, PoolingMode, PoolingTask

DIMENSIONS = 64
FIRST_DIVIDER, LAST_DIVIDER = 256, 511
_PAIR, _FIRST_LABEL = np.uint64(1 << 32), np.uint64(1 << 62)


@dataclass(frozen=True, slots=True)
class PoolingCost:
    """What a batch costs, as a prefill does in `CostModel`."""

    base_s: float = 0.020
    token_s: float = 0.000035


class SimulatedPooling:
    """`labels` are those of `rank`. `elapse` is called with each batch's price in seconds; None: time is free."""

    def __init__(
        self,
        mode: PoolingMode = PoolingMode.MEAN,
        *,
        vocab_size: int = 258,
        max_input_tokens: int = 2048,
        labels: tuple[str, ...] = (),
        elapse: Callable[[float], None] | None = None,
    ) -> None:
        if mode is PoolingMode.RANK and not labels:
            labels = ("LABEL_0",)
        info = PoolingInfo(mode, DIMENSIONS, max_input_tokens, labels if mode is PoolingMode.RANK else ())
        self._caps = PoolingCaps(
            info=info, vocab_size=vocab_size, max_batch_tokens=max_input_tokens, max_batch_inputs=64, tolerance=0.0
        )
        self._cost = PoolingCost()
        self._elapse = elapse
        self._salts = mixed(np.arange(1, DIMENSIONS + 1, dtype=np.uint64))

    @property
    def caps(self) -> PoolingCaps:
        return self._caps

    def pool(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> Float32Array:
        """Raises BackendError when the batch breaks a rule of the port."""
        self._check(prompts, task)
        if self._elapse is not None:
            self._elapse(self._cost.base_s + self._cost.token_s * sum(map(len, prompts)))
        rows = [self._vector(np.array(prompt, dtype=np.uint64)) for prompt in prompts]
        return np.array(rows, dtype=np.float32)

    def close(self) -> None:
        """Nothing to give back."""

    def _check(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> None:
        caps = self._caps
        lengths = [len(prompt) for prompt in prompts]
        if caps.width_of(task) is None:
            raise BackendError(f"this model pools by {caps.info.mode.value}, which does not {task.value}")
        if len(lengths) > caps.max_batch_inputs or sum(lengths) > caps.max_batch_tokens:
            raise BackendError(f"a batch of {len(lengths)} prompts with {sum(lengths)} tokens is too large")
        if not lengths or not min(lengths):
            raise BackendError("a prompt is empty")
        if max(max(prompt) for prompt in prompts) >= caps.vocab_size:
            raise BackendError(f"a token id lies outside the vocabulary of {caps.vocab_size}")

    def _vector(self, token_ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        mode = self._caps.info.mode
        features = self._features(token_ids)
        if mode is PoolingMode.MEAN:
            return features
        if mode is not PoolingMode.RANK:
            leaning: npt.NDArray[np.float64] = self._noise(token_ids[:1] if mode is PoolingMode.CLS else token_ids[-1:])
            return features + leaning.reshape(-1)
        labels = self._caps.info.labels
        if len(labels) > 1:
            directions = self._noise(np.arange(len(labels), dtype=np.uint64) + _FIRST_LABEL)
            scores: npt.NDArray[np.float64] = directions @ features
            return scores
        return np.array([self._likeness(token_ids)])

    def _likeness(self, token_ids: npt.NDArray[np.uint64]) -> float:
        """8 x cosine - 4 between the first part and all others; about -6 where there is one part."""
        is_divider = (token_ids >= FIRST_DIVIDER) & (token_ids <= LAST_DIVIDER)
        cuts = np.flatnonzero(is_divider)
        parts = [part[(part < FIRST_DIVIDER) | (part > LAST_DIVIDER)] for part in np.split(token_ids, cuts)]
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return -6.0 + float(self._features(token_ids)[0])
        first, rest = self._features(parts[0]), self._features(np.concatenate(parts[1:]))
        return float(8.0 * (first @ rest) / (np.linalg.norm(first) * np.linalg.norm(rest)) - 4.0)

    def _features(self, token_ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        keys = np.concatenate((token_ids, (token_ids[:-1] + np.uint64(1)) * _PAIR + token_ids[1:]))
        mean: npt.NDArray[np.float64] = self._noise(keys).mean(axis=0)
        return mean

    def _noise(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        """Returns numbers from -1 to 1, a row for each key."""
        bits = mixed(mixed(keys + np.uint64(1))[:, None] ^ self._salts[None, :])
        unit: npt.NDArray[np.float64] = (bits >> np.uint64(11)).astype(np.float64) / float(1 << 52) - 1.0
        return unit
