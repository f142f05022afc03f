"""Decides the shape of the context that prompts are only read in: longest prompt, tokens of a pass, bytes. Pure.

Two ways to read:
- In slices, where each token looks back only (models that generate): a prompt enters the cache pass by pass, its hidden
  states come out row by row, and the mean is made here. A pass is as small as a step; length costs cache alone.
- Whole, where tokens look ahead as well (encoders), or where the file's classification head wants all states in one
  pass: one pass holds the longest prompt, and its buffers grow with it.

Knows nothing of llama.cpp's handles.
"""

from dataclasses import dataclass

from tidegate.inference.pooling import PoolingInfo, PoolingMode
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import ModelFacts, kv_bytes_per_token, mib, padded
from tidegate.sizing.start_error import StartError

# Without an option the longest prompt is no longer than this.
DEFAULT_INPUT_TOKENS = 2048
# Tokens of a pass at most; llama.cpp's own default.
MAX_PASS_TOKENS = 512
MAX_BATCH_INPUTS = 32


@dataclass(frozen=True, slots=True)
class PoolingFacts:
    """What a model file says of reading. `mode` is the file's own; None where it names none, or one unknown to us.

    `looks_ahead`: tokens see those behind them. `labels` has a name for each output that the classification head should
    have, `num_head_outputs` is how many the file's tensors give; None where they make none.
    """

    has_cache: bool
    looks_ahead: bool
    mode: PoolingMode | None
    labels: tuple[str, ...]
    dimensions: int
    num_heads: int
    inner_width: int
    num_head_outputs: int | None = None


@dataclass(frozen=True, slots=True)
class PoolingPlan:
    """The chosen shape; bytes are estimates. `n_ctx` is 0 where there is no cache."""

    info: PoolingInfo
    in_slices: bool
    pass_tokens: int
    n_ctx: int
    max_batch_tokens: int
    max_batch_inputs: int
    kv_bytes: int
    buffer_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.buffer_bytes

    def describe(self) -> str:
        """Returns the sums in a line."""
        cache = f" and a cache of {self.n_ctx} tokens" if self.n_ctx else ""
        return (
            f"embeddings      {mib(self.total_bytes)} = passes of {self.pass_tokens} tokens{cache}"
            f" ({self.info.mode.value}, prompts of at most {self.info.max_input_tokens} tokens)"
        )


def plan_pooling(facts: ModelFacts, reading: PoolingFacts, options: LlamaCppOptions) -> PoolingPlan:
    """Returns the shape for this model and these options. Raises StartError when what was asked for cannot be."""
    mode = _mode(reading, options)
    if mode is PoolingMode.RANK:
        _check_head(facts, reading)
    longest = _longest(facts, reading, options)
    in_slices = reading.has_cache and not reading.looks_ahead and mode is not PoolingMode.RANK
    step = min(options.max_step_tokens, MAX_PASS_TOKENS)
    pass_tokens = step if in_slices else max(step, longest)
    n_ctx = padded(max(longest, pass_tokens)) if reading.has_cache else 0
    return PoolingPlan(
        info=PoolingInfo(mode, reading.dimensions, longest, reading.labels if mode is PoolingMode.RANK else ()),
        in_slices=in_slices,
        pass_tokens=pass_tokens,
        n_ctx=n_ctx,
        max_batch_tokens=step,
        # State that is a running summary is kept for each prompt of a batch.
        max_batch_inputs=min(MAX_BATCH_INPUTS, step) if facts.can_truncate else 1,
        kv_bytes=n_ctx * kv_bytes_per_token(facts, options),
        buffer_bytes=_buffer_bytes(facts, reading, pass_tokens),
    )


def _mode(reading: PoolingFacts, options: LlamaCppOptions) -> PoolingMode:
    if options.pooling == "auto":
        return reading.mode if reading.mode is not None else PoolingMode.MEAN
    mode = PoolingMode(options.pooling)
    if mode is PoolingMode.RANK and reading.mode is not PoolingMode.RANK:
        raise StartError("pooling is rank, but the model file has no classification head: set pooling to auto or mean")
    return mode


def _check_head(facts: ModelFacts, reading: PoolingFacts) -> None:
    """llama.cpp takes the first of whatever numbers come out for the outputs of a head that is not there."""
    if reading.num_head_outputs == len(reading.labels):
        return
    has = "none" if reading.num_head_outputs is None else f"one with {reading.num_head_outputs}"
    raise StartError(
        f"{facts.name} says that it pools by rank, and so has a classification head with {len(reading.labels)} "
        f"outputs, but its tensors make {has}: convert it again with its head (cls.output.weight), or set pooling to "
        "mean, cls or last to have embeddings of it"
    )


def _longest(facts: ModelFacts, reading: PoolingFacts, options: LlamaCppOptions) -> int:
    name = "embedding_tokens" if reading.has_cache else "max_model_len"
    wanted = options.embedding_tokens if reading.has_cache else options.max_model_len
    if wanted is not None and wanted > facts.n_ctx_train:
        raise StartError(f"{name} is {wanted}, but {facts.name} reads at most {facts.n_ctx_train} tokens: lower it")
    if wanted is None:
        wanted = min(facts.n_ctx_train, DEFAULT_INPUT_TOKENS, options.max_model_len or DEFAULT_INPUT_TOKENS)
    return wanted


def _buffer_bytes(facts: ModelFacts, reading: PoolingFacts, pass_tokens: int) -> int:
    """Rows of hidden states and their inner layers; scores of all pairs of tokens; and the rows of logits, twice as in
    `memory_plan`, that a model which generates computes all the same.
    """
    rows = pass_tokens * (6 * reading.dimensions + 2 * reading.inner_width) * 4
    scores = 0 if reading.has_cache else reading.num_heads * pass_tokens * pass_tokens * 4
    logits = 2 * pass_tokens * facts.vocab_size * 4 if reading.has_cache else 0
    return rows + scores + logits


def encoder_blocks(plan: PoolingPlan, options: LlamaCppOptions) -> tuple[int, int]:
    """Returns the longest prompt and the blocks that an engine without a cache declares: room for `max_sequences`
    prompts, so that whoever admits by blocks admits as many as by rows.
    """
    longest = plan.info.max_input_tokens
    return longest, options.max_sequences * -(-longest // options.block_tokens)
