"""`LlamaPooling`: prompts that are only read, in a context of their own over the same weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.backends.llama_cpp.batch import LlamaBatch, StepTokens
from tidegate.backends.llama_cpp.library import Library
from tidegate.backends.llama_cpp.model import LlamaModel
from tidegate.backends.llama_cpp.pooling_context import open_pooling_context
from tidegate.backends.llama_cpp.timed_pass import DECODE_FAULTS, TimedPass
from tidegate.core.backend import BackendError, Float32Array
from tidegate.core.pooling_backend import PoolingCaps, PoolingError
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.pooling_plan import PoolingPlan
from tidegate.sizing.start_error import StartError

# The largest difference of a number that neighbours in a batch make, in parts of a vector's length: seen 0.025 with 4
# bit weights and `last`, doubled. It comes from passes of other widths, which use other kernels.
POOLING_TOLERANCE = 0.05


class LlamaPooling:
    """A `PoolingBackend` over a loaded model, which belongs to the caller and must outlive it."""

    def __init__(
        self, library: Library, model: LlamaModel, options: LlamaCppOptions, plan: PoolingPlan, vocab_size: int
    ) -> None:
        self._library = library
        self._api = library.api
        self._model = model
        self._options = options
        self.plan = plan
        self._context: Any = None
        self.max_threads: Callable[[], int | None] = lambda: None
        """Asked for the threads of a pass when the context is made; None: as the options say."""
        self._caps = PoolingCaps(
            info=plan.info,
            vocab_size=vocab_size,
            max_batch_tokens=plan.max_batch_tokens,
            max_batch_inputs=plan.max_batch_inputs,
            tolerance=POOLING_TOLERANCE,
        )

    @property
    def caps(self) -> PoolingCaps:
        return self._caps

    @property
    def is_open(self) -> bool:
        """Whether the context's memory is taken."""
        return bool(self._context)

    def open(self) -> None:
        """Makes the context, unless it is there. Raises StartError."""
        if self._context:
            return
        self._context = open_pooling_context(self._library, self._model, self._options, self.plan)
        self._memory = self._api.llama_get_memory(self._context)
        self._batch = LlamaBatch(self._api, self.plan.pass_tokens)
        self._pass = TimedPass(self._api, self._context, self._options, on_gpu=self._model.on_gpu)
        num_threads = self.max_threads()
        if num_threads is not None and self._pass.has_free_threads:
            self._pass.set_threads(num_threads)

    def pool(self, prompts: "Sequence[memoryview[int] | Sequence[int]]", task: PoolingTask) -> Float32Array:
        """The first call makes the context; where that cannot be, it raises PoolingError."""
        try:
            self.open()
        except StartError as error:
            raise PoolingError("there is no memory to read prompts in") from error
        tokens = _columns(prompts)
        bounds = np.concatenate(([0], np.cumsum([len(prompt) for prompt in prompts])))
        if self.plan.in_slices:
            return self._pool_rows(tokens, bounds)
        return self._pool_whole(tokens, len(prompts), self._caps.width_of(task) or 0)

    def close(self) -> None:
        """Frees the context. Idempotent."""
        if self._context:
            self._api.llama_free(self._context)
            self._context = None

    def _pool_rows(self, tokens: StepTokens, bounds: npt.NDArray[np.intp]) -> Float32Array:
        """Feeds the prompts slice by slice, and pools the hidden states that come out for each token."""
        info = self.plan.info
        sums = np.zeros((len(bounds) - 1, info.dimensions))
        for part in tokens.parts(self.plan.pass_tokens, self.plan.pass_tokens):
            self._decode(tokens, part)
            shape = (part.stop - part.start, info.dimensions)
            rows = np.ctypeslib.as_array(self._api.llama_get_embeddings(self._context), shape)
            for index in range(int(tokens.seq_ids[part.start]), int(tokens.seq_ids[part.stop - 1]) + 1):
                start, stop = _picked(info.mode, int(bounds[index]), int(bounds[index + 1]))
                first, last = max(start, part.start) - part.start, min(stop, part.stop) - part.start
                if first < last:
                    sums[index] += rows[first:last].sum(axis=0, dtype=np.float64)
        if self._memory:
            self._api.llama_memory_clear(self._memory, False)
        if info.mode is PoolingMode.MEAN:
            sums /= np.diff(bounds)[:, None]
        return sums.astype(np.float32)

    def _pool_whole(self, tokens: StepTokens, num_prompts: int, width: int) -> Float32Array:
        """Feeds the prompts in one pass, and takes what llama.cpp pooled for each."""
        self._decode(tokens, slice(0, len(tokens.token_ids)))
        vectors = np.empty((num_prompts, width), np.float32)
        for index in range(num_prompts):
            pooled = self._api.llama_get_embeddings_seq(self._context, index)
            if not pooled:
                raise BackendError(f"llama.cpp pooled nothing for prompt {index} of {num_prompts}")
            vectors[index] = np.ctypeslib.as_array(pooled, (width,))
        if self._memory:
            self._api.llama_memory_clear(self._memory, False)
        return vectors

    def _decode(self, tokens: StepTokens, part: slice) -> None:
        self._batch.fill(tokens, part)
        code = self._pass.decode(self._batch.struct)
        if code != 0:
            fault = DECODE_FAULTS.get(code, "unknown fault")
            raise BackendError(f"llama_decode returned {code} ({fault}) for {part.stop - part.start} tokens to pool")


def _picked(mode: PoolingMode, start: int, stop: int) -> tuple[int, int]:
    """Returns which rows of a prompt's `start .. stop` go into its vector."""
    match mode:
        case PoolingMode.CLS:
            return start, start + 1
        case PoolingMode.LAST:
            return stop - 1, stop
        case _:
            return start, stop


def _columns(prompts: "Sequence[memoryview[int] | Sequence[int]]") -> StepTokens:
    """Returns the prompts one after the other, each as a sequence of its own, every row wanted."""
    lengths = [len(prompt) for prompt in prompts]
    positions = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
    seq_ids = np.repeat(np.arange(len(prompts), dtype=np.int32), lengths)
    return StepTokens(
        token_ids=np.concatenate([np.asarray(prompt, dtype=np.int32) for prompt in prompts]),
        positions=positions,
        seq_ids=seq_ids,
        wanted=np.ones(len(positions), np.int8),
        rows=list(zip(seq_ids.tolist(), positions.tolist(), strict=True)),
        row_order=None,
        fillers=[],
    )
