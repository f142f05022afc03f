"""Decides the shape of the cache: longest sequence, number of tokens, layout. Pure arithmetic on what the shell read.

Knows nothing of llama.cpp's handles. `MemoryPlan.describe` shows the sums, for the caller to print.
"""

from dataclasses import dataclass

from tidegate.engine.options import KV_TYPE_BYTES
from tidegate.sizing.llama_cpp_options import MAX_SEQUENCES, KvLayout, LlamaCppOptions, check_options
from tidegate.sizing.start_error import StartError

# llama.cpp rounds each stream up to this many cells.
CELL_PADDING = 256
# Without an option a sequence gets no more than this: contexts of 128 Ki tokens and more would take all memory.
DEFAULT_MODEL_LEN = 4096
# Part of the free memory that the cache may take by itself; the rest is for buffers, the server and the system.
CACHE_SHARE = 0.6
# Without an option the cache is no larger than this, whatever is free.
DEFAULT_CACHE_BYTES = 8 << 30
# What a step may return: rows of logits, for each sequence and for slices whose every row is wanted.
LEAST_STEP_OUTPUTS = 64


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model file says of itself. `kv_width_k` and `kv_width_v` are the values of one token's keys and values in
    all layers together; `available_bytes` is free memory before loading; None: unknown.
    """

    name: str
    weights_bytes: int
    n_ctx_train: int
    kv_width_k: int
    kv_width_v: int
    vocab_size: int
    can_truncate: bool
    available_bytes: int | None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The chosen shape. `n_ctx` is what llama.cpp is asked for; bytes are estimates."""

    layout: KvLayout
    max_model_len: int
    max_sequences: int
    num_seq_ids: int
    n_ctx: int
    num_blocks: int
    block_tokens: int
    max_step_tokens: int
    max_step_outputs: int
    vocab_size: int
    kv_bytes_per_token: int
    kv_bytes: int
    logits_bytes: int
    weights_bytes: int
    available_bytes: int | None
    reserved_bytes: int = 0
    """Left free for prompts that are only read: taken with the first of them."""

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.logits_bytes + self.reserved_bytes

    def describe(self) -> str:
        """Returns the sums in a few lines."""
        room = "unknown" if self.available_bytes is None else mib(self.available_bytes)
        return "\n".join(
            (
                f"weights         {mib(self.weights_bytes)}",
                f"cache           {mib(self.kv_bytes)} = {self.n_ctx} tokens x {self.kv_bytes_per_token} bytes"
                f" ({self.layout}, {self.max_sequences} sequences, at most {self.max_model_len} tokens each)",
                f"logits          {mib(self.logits_bytes)} = at most {self.max_step_outputs} rows a step",
                *([f"embeddings      {mib(self.reserved_bytes)}"] if self.reserved_bytes else ()),
                f"total           {mib(self.total_bytes)} of {room} free",
            )
        )


def plan_memory(facts: ModelFacts, options: LlamaCppOptions, *, reserved_bytes: int = 0) -> MemoryPlan:
    """Returns the shape of the cache for this model and these options, beside `reserved_bytes` for another purpose.

    Raises StartError when what was asked for does not fit, with the numbers and the option to change.
    """
    check_options(options)
    per_token = kv_bytes_per_token(facts, options)
    outputs = _max_step_outputs(options)
    # Twice: llama.cpp's output buffer, and the same rows at the end of its compute buffer.
    logits_bytes = 2 * outputs * facts.vocab_size * 4
    room = _cache_room_tokens(facts, logits_bytes + reserved_bytes, per_token)
    capacity = options.kv_tokens if options.kv_tokens is not None else room
    length = _model_len(facts, options, capacity)
    layout = _layout(options, length, capacity)
    n_ctx = _n_ctx(options, layout, length, capacity)
    if length > n_ctx:
        raise StartError(f"max_model_len ({length}) is larger than kv_tokens ({n_ctx}): raise kv_tokens or lower it")
    _check_fit(facts, options, length, (n_ctx, n_ctx * per_token), (logits_bytes, reserved_bytes))
    cells = n_ctx // options.max_sequences if layout == "per_sequence" else n_ctx
    if options.repeatable:
        cells = min(cells, padded(length))  # the rest is for fillers
    blocks = cells // options.block_tokens * (options.max_sequences if layout == "per_sequence" else 1)
    return MemoryPlan(
        layout=layout,
        max_model_len=length,
        max_sequences=options.max_sequences,
        num_seq_ids=_num_seq_ids(facts, options, layout),
        n_ctx=n_ctx,
        num_blocks=blocks,
        block_tokens=options.block_tokens,
        max_step_tokens=min(options.max_step_tokens, n_ctx),
        max_step_outputs=min(outputs, n_ctx),
        vocab_size=facts.vocab_size,
        kv_bytes_per_token=per_token,
        kv_bytes=n_ctx * per_token,
        logits_bytes=logits_bytes,
        weights_bytes=facts.weights_bytes,
        available_bytes=facts.available_bytes,
        reserved_bytes=reserved_bytes,
    )


def _num_seq_ids(facts: ModelFacts, options: LlamaCppOptions, layout: KvLayout) -> int:
    """In one pool a sequence id costs nothing, and some only hold what is cached: as many as a step has rows at least,
    which llama.cpp asks for. Per sequence each would cost a buffer; there those that do not run hold what is cached.
    """
    if layout == "per_sequence" or not facts.can_truncate or not options.prefix_cache:
        return options.max_sequences
    return min(MAX_SEQUENCES, _max_step_outputs(options))


def _max_step_outputs(options: LlamaCppOptions) -> int:
    return min(options.max_step_tokens, max(2 * options.max_sequences, LEAST_STEP_OUTPUTS))


def kv_bytes_per_token(facts: ModelFacts, options: LlamaCppOptions) -> int:
    """Returns the size of one token's keys and values, in all layers."""
    k_bytes = facts.kv_width_k * KV_TYPE_BYTES[options.kv_type_k]
    v_bytes = facts.kv_width_v * KV_TYPE_BYTES[options.kv_type_v]
    return max(1, round(k_bytes + v_bytes))


def _cache_room_tokens(facts: ModelFacts, other_bytes: int, per_token: int) -> int:
    """How many tokens of cache the free memory allows, when nobody says."""
    if facts.available_bytes is None:
        return DEFAULT_CACHE_BYTES // per_token
    free = facts.available_bytes - facts.weights_bytes - other_bytes
    return max(0, min(int(free * CACHE_SHARE), DEFAULT_CACHE_BYTES)) // per_token


def _model_len(facts: ModelFacts, options: LlamaCppOptions, capacity: int) -> int:
    """Longest sequence: as asked, or the default lowered to the capacity, in whole blocks."""
    if options.max_model_len is not None:
        return options.max_model_len
    length = min(facts.n_ctx_train, DEFAULT_MODEL_LEN)
    if options.kv_layout == "per_sequence":
        length = min(length, capacity // options.max_sequences // CELL_PADDING * CELL_PADDING)
    else:
        length = min(length, capacity // CELL_PADDING * CELL_PADDING)
    if length < 1:
        raise StartError(
            f"not even {CELL_PADDING} tokens of cache fit beside {facts.name} ({mib(facts.weights_bytes)}): "
            "free memory, take a smaller model, or lower max_sequences"
        )
    return length


def _layout(options: LlamaCppOptions, length: int, capacity: int) -> KvLayout:
    if options.kv_layout != "auto":
        return options.kv_layout
    if options.repeatable:
        return "per_sequence"
    return "per_sequence" if options.max_sequences * padded(length) <= capacity else "unified"


def _n_ctx(options: LlamaCppOptions, layout: KvLayout, length: int, capacity: int) -> int:
    # A filler token stands behind the last one of a full sequence.
    whole = options.max_sequences * padded(length + options.repeatable)
    if layout == "per_sequence":
        if options.kv_tokens is not None and options.kv_tokens < whole:
            raise StartError(
                f"kv_tokens is {options.kv_tokens}, but kv_layout per_sequence needs max_sequences x max_model_len = "
                f"{options.max_sequences} x {whole // options.max_sequences} = {whole}: raise it, lower one of "
                "the two, or set kv_layout to unified"
            )
        return whole
    if options.kv_tokens is not None:
        return padded(options.kv_tokens)
    return max(padded(length), min(whole, capacity // CELL_PADDING * CELL_PADDING))


def _check_fit(
    facts: ModelFacts, options: LlamaCppOptions, length: int, cache: tuple[int, int], beside: tuple[int, int]
) -> None:
    """Raises StartError with the sums. `cache`: its tokens and bytes; `beside`: bytes of logits and for embeddings."""
    (n_ctx, kv_bytes), (logits_bytes, reserved_bytes) = cache, beside
    need = facts.weights_bytes + kv_bytes + logits_bytes + reserved_bytes
    if facts.available_bytes is None or need <= facts.available_bytes:
        return
    embeddings = f" + {mib(reserved_bytes)} for embeddings" if reserved_bytes else ""
    raise StartError(
        f"{facts.name} needs {mib(facts.weights_bytes)} for weights + {mib(kv_bytes)} for a cache of {n_ctx} tokens + "
        f"{mib(logits_bytes)} for logits{embeddings} = {mib(need)}, but {mib(facts.available_bytes)} are free: lower "
        f"max_model_len ({length}), max_sequences ({options.max_sequences}) or kv_tokens, set kv_type_k and kv_type_v "
        f"to q8_0, {'set embeddings to off, ' if reserved_bytes else ''}or take a smaller model"
    )


def padded(tokens: int) -> int:
    """Returns the cells that llama.cpp takes for so many tokens."""
    return -(-tokens // CELL_PADDING) * CELL_PADDING


def mib(num_bytes: int) -> str:
    """Returns a size for people."""
    return f"{num_bytes / (1 << 20):,.0f} MiB"
