"""An estimate of the memory that an engine will take, from a model file's head and the settings. Pure.

The engine makes its own plan when it starts, from what llama.cpp says of the loaded model; this is the same arithmetic
on less knowledge. Compute buffers, the server itself and weights on a GPU are not counted.
"""

from dataclasses import dataclass

from tidegate.cli.gguf_header import GgufHeader
from tidegate.cli.settings import Settings, step_tokens
from tidegate.engine.options import KV_TYPE_BYTES

DEFAULT_MODEL_LEN = 4096
"""What the engine gives a sequence when nobody says, where the model can do more."""
_LEAST_LOGIT_ROWS = 64


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """`least_bytes` is one sequence of full length; `full_bytes` every sequence, or the cache that was asked for."""

    weights_bytes: int
    kv_bytes_per_token: int
    model_len: int
    least_bytes: int
    full_bytes: int


def estimate_memory(header: GgufHeader, weights_bytes: int, settings: Settings) -> MemoryEstimate | None:
    """Returns the estimate; None where the file does not say enough, as for models without a cache per token."""
    per_token = _kv_bytes_per_token(header, settings)
    if per_token is None:
        return None
    engine = settings.engine
    trained_len = header.number("context_length") or DEFAULT_MODEL_LEN
    length = settings.model.max_model_len or min(trained_len, DEFAULT_MODEL_LEN)
    vocab_size = header.array_lengths.get("tokenizer.ggml.tokens", 0)
    rows = min(step_tokens(engine), max(2 * engine.max_sequences, _LEAST_LOGIT_ROWS))
    base = weights_bytes + 2 * rows * vocab_size * 4
    given = engine.num_blocks * engine.block_tokens if engine.num_blocks is not None else None
    least_tokens = given if given is not None else length
    full_tokens = given if given is not None else length * engine.max_sequences
    return MemoryEstimate(
        weights_bytes=weights_bytes,
        kv_bytes_per_token=per_token,
        model_len=length,
        least_bytes=base + least_tokens * per_token,
        full_bytes=base + full_tokens * per_token,
    )


def _kv_bytes_per_token(header: GgufHeader, settings: Settings) -> int | None:
    num_layers = header.number("block_count")
    if not num_layers:
        return None
    heads = header.numbers("attention.head_count", num_layers)
    if not heads:
        return None
    kv_heads = sum(header.numbers("attention.head_count_kv", num_layers) or heads)
    width = (header.number("embedding_length") or 0) // max(1, heads[0])
    k_width = header.number("attention.key_length") or width
    v_width = header.number("attention.value_length") or width
    engine = settings.engine
    k_bytes = kv_heads * k_width * KV_TYPE_BYTES[engine.kv_type_k]
    v_bytes = kv_heads * v_width * KV_TYPE_BYTES[engine.kv_type_v]
    return max(1, round(k_bytes + v_bytes))
