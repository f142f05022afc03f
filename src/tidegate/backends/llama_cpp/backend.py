"""`LlamaCppBackend`: llama.cpp's forward pass behind the `Backend` port."""

from pathlib import Path
from typing import Any

import numpy as np

from tidegate.backends.llama_cpp.batch import LlamaBatch, StepTokens, lay_out
from tidegate.backends.llama_cpp.library import load_library
from tidegate.backends.llama_cpp.memory import LlamaMemory, apply_moves, cut_fillers
from tidegate.backends.llama_cpp.model import MAX_PASS_TOKENS, LlamaModel, open_context
from tidegate.backends.llama_cpp.repeatable import check_repeatable
from tidegate.backends.llama_cpp.timed_pass import DECODE_FAULTS, TimedPass
from tidegate.backends.llama_cpp.tokens import read_token_table
from tidegate.backends.llama_cpp.weights import digest_weights, weight_files
from tidegate.core.backend import BackendCaps, BackendError, Float32Array, StepLogits
from tidegate.core.plan import StepPlan
from tidegate.grammar.matcher import TokenTable
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import MemoryPlan, plan_memory
from tidegate.sizing.start_error import StartError

# A logit's largest difference between other ways to feed the same tokens, seen 1.01 (of a range of 47) with 4 bit
# weights, doubled. It comes from passes over one token, which use other kernels than wider ones, and from flash
# attention. Without either, rows are equal to the last bit: that is `repeatable`.
LOGIT_TOLERANCE = 2.0


class LlamaCppBackend:
    """A GGUF model under our scheduler. Not for use by several threads at once; a forward pass releases the GIL."""

    def __init__(
        self, options: LlamaCppOptions, model: LlamaModel | None = None, plan: MemoryPlan | None = None
    ) -> None:
        """Loads the model, or takes over one that is loaded, and allocates the cache, by `plan` if there is one.

        Raises StartError saying what to change; the model is closed then.
        """
        files = weight_files(Path(options.model_path))
        self._library = load_library()
        self._api = self._library.api
        self._is_repeatable = options.repeatable
        self._context: Any = None
        self._model = model if model is not None else LlamaModel(self._library, files[0], options)
        try:
            facts = self._model.facts()
            self.memory_plan = plan if plan is not None else plan_memory(facts, options)
            self._context = open_context(self._library, self._model, options, self.memory_plan)
            self._memory = self._open_memory(files[0])
            self._pass = TimedPass(self._api, self._context, options, on_gpu=self._model.on_gpu)
            self._batch = LlamaBatch(self._api, self.memory_plan.max_step_tokens)
            self._caps = self._make_caps(can_truncate=facts.can_truncate, digest=digest_weights(files))
            if options.repeatable:
                check_repeatable(self, on_gpu=self._model.on_gpu)
        except BaseException:
            self.close()
            raise

    @property
    def caps(self) -> BackendCaps:
        return self._caps

    @property
    def has_free_threads(self) -> bool:
        """Whether the number of threads is ours to choose, and matters."""
        return self._pass.has_free_threads

    @property
    def max_threads(self) -> int | None:
        """The most threads of a pass, where they are ours to choose."""
        return self._pass.max_threads

    def set_threads(self, num_threads: int) -> None:
        """Uses at most so many threads from the next pass on; fewer while others take cores away."""
        self._pass.set_threads(num_threads)

    def token_table(self) -> TokenTable:
        """Returns the bytes of all tokens, as grammars need them. Takes a while: a call for each token."""
        return read_token_table(self._api, self._model.vocabulary)

    def execute(self, plan: StepPlan) -> StepLogits:
        """Carries out the moves, then one forward pass. `values` is a view of llama.cpp's own memory where the order
        of rows allows. Raises BackendError when the pass failed.
        """
        apply_moves(self._memory, plan.moves, self.memory_plan.layout)
        tokens = lay_out(plan, by_sequence=self.memory_plan.layout == "per_sequence", even=self._is_repeatable)
        logits = self._forward(tokens)
        cut_fillers(self._memory, tokens.fillers)
        return logits

    def _forward(self, tokens: StepTokens) -> StepLogits:
        limits = self.memory_plan
        # A batch within one pass is divided by widths alone.
        max_tokens = min(limits.max_step_tokens, MAX_PASS_TOKENS) if self._is_repeatable else limits.max_step_tokens
        parts = list(tokens.parts(max_tokens, limits.max_step_outputs)) if len(tokens.token_ids) else []
        if len(parts) == 1 and tokens.row_order is None:
            return StepLogits(tokens.rows, self._decode(tokens, parts[0]))
        values = np.empty((len(tokens.rows), self._caps.vocab_size), np.float32)
        order = np.arange(len(tokens.rows)) if tokens.row_order is None else tokens.row_order
        done = 0
        for part in parts:
            logits = self._decode(tokens, part)
            values[order[done : done + len(logits)]] = logits
            done += len(logits)
        return StepLogits(tokens.rows, values)

    def close(self) -> None:
        """Frees context and weights. Idempotent."""
        if self._context:
            self._api.llama_free(self._context)
            self._context = None
        self._model.close()

    def _decode(self, tokens: StepTokens, part: slice) -> Float32Array:
        """Feeds one batch; returns its logits as a view that the next call overwrites."""
        num_rows = self._batch.fill(tokens, part)
        code = self._pass.decode(self._batch.struct)
        if code != 0:
            fault = DECODE_FAULTS.get(code, "unknown fault")
            raise BackendError(
                f"llama_decode returned {code} ({fault}) for {part.stop - part.start} tokens of "
                f"{len(np.unique(tokens.seq_ids[part]))} sequences"
            )
        vocab_size = self._caps.vocab_size
        if num_rows == 0:
            return np.empty((0, vocab_size), np.float32)
        return np.ctypeslib.as_array(self._api.llama_get_logits(self._context), (num_rows, vocab_size))

    def _open_memory(self, path: Path) -> LlamaMemory:
        handle = self._api.llama_get_memory(self._context)
        if not handle:
            raise StartError(f"{path} has no cache of keys and values: it is no model that generates text")
        plan, api = self.memory_plan, self._api
        if api.llama_n_ctx_seq(self._context) < plan.max_model_len or api.llama_n_ctx(self._context) < plan.n_ctx:
            raise StartError(f"llama.cpp made a smaller cache than planned:\n{plan.describe()}")
        return LlamaMemory(api.llama_memory_seq_cp, api.llama_memory_seq_rm, handle)

    def _make_caps(self, *, can_truncate: bool, digest: str) -> BackendCaps:
        plan: MemoryPlan = self.memory_plan
        return BackendCaps(
            vocab_size=plan.vocab_size,
            max_model_len=plan.max_model_len,
            max_sequences=plan.max_sequences,
            max_step_tokens=plan.max_step_tokens,
            num_blocks=plan.num_blocks,
            block_tokens=plan.block_tokens,
            eos_token_ids=self._model.end_token_ids(),
            can_share=can_truncate,
            can_truncate=can_truncate,
            logit_tolerance=0.0 if self._is_repeatable else LOGIT_TOLERANCE,
            weights_digest=digest,
            build=self._library.build,
            max_pass_rows=plan.max_step_outputs,
            memory=plan.describe(),
            num_seq_ids=plan.num_seq_ids,
            has_ordered_ids=plan.layout == "per_sequence",
        )
