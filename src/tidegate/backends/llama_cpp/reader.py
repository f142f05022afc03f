"""`LlamaReader`: the `Backend` of a model without a cache, which generates nothing. `LlamaPooling` does its work."""

from pathlib import Path

from tidegate.backends.llama_cpp.library import Library
from tidegate.backends.llama_cpp.model import LlamaModel
from tidegate.backends.llama_cpp.tokens import read_token_table
from tidegate.backends.llama_cpp.weights import digest_weights
from tidegate.core.backend import BackendCaps, BackendError, StepLogits
from tidegate.core.plan import StepPlan
from tidegate.grammar.matcher import TokenTable
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.pooling_plan import PoolingPlan, encoder_blocks


class LlamaReader:
    """Owns the model handle, and says what there is to say about it."""

    def __init__(
        self,
        library: Library,
        model: LlamaModel,
        files: list[Path],
        options: LlamaCppOptions,
        plan: PoolingPlan,
        memory: str,
    ) -> None:
        """`memory` is the budget, for people."""
        self._api = library.api
        self._model = model
        longest, num_blocks = encoder_blocks(plan, options)
        self._caps = BackendCaps(
            vocab_size=library.api.llama_vocab_n_tokens(model.vocabulary),
            max_model_len=longest,
            max_sequences=options.max_sequences,
            max_step_tokens=options.max_step_tokens,
            num_blocks=num_blocks,
            block_tokens=options.block_tokens,
            eos_token_ids=model.end_token_ids(),
            can_share=False,
            can_truncate=False,
            logit_tolerance=0.0,
            weights_digest=digest_weights(files),
            build=library.build,
            generates=False,
            memory=memory,
        )

    @property
    def caps(self) -> BackendCaps:
        return self._caps

    def token_table(self) -> TokenTable:
        """Returns the bytes of all tokens."""
        return read_token_table(self._api, self._model.vocabulary)

    def execute(self, plan: StepPlan) -> StepLogits:
        """Raises BackendError always: nothing is ever to be executed."""
        raise BackendError(f"this model only reads; a step of {plan.num_tokens} tokens was planned")

    def close(self) -> None:
        """Frees the weights. Idempotent."""
        self._model.close()
