"""What the head of a model file says of memory and of reading: the facts of the plans, without llama.cpp. Pure.

The engine asks llama.cpp, which knows more (`has_cache` is declared nowhere); tests hold both to the same answers.
"""

from collections.abc import Mapping

from tidegate.inference.pooling import PoolingMode
from tidegate.sizing.gguf_header import GgufHeader
from tidegate.sizing.memory_plan import ModelFacts
from tidegate.sizing.pooling_plan import PoolingFacts

# enum llama_pooling_type of llama.h
MODE_NUMBERS = {PoolingMode.MEAN: 1, PoolingMode.CLS: 2, PoolingMode.LAST: 3, PoolingMode.RANK: 4}
_MODES = {number: mode for mode, number in MODE_NUMBERS.items()}
_DEFAULT_CONTEXT = 4096
_WITHOUT_CACHE = frozenset(
    (
        "bert", "dream", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llada", "llada-moe",
        "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "rnd1",
    )
)  # fmt: skip
"""Architectures for which llama.cpp makes no cache of keys and values."""
_HEAD_TENSORS = ("cls.output.weight", "cls.weight")
"""The last of a classification head's matrices, and the only one of some."""


def model_facts(header: GgufHeader, name: str, file_bytes: int, available_bytes: int | None) -> ModelFacts | None:
    """Returns what the cache's shape depends on; None where the file does not say enough."""
    num_layers = header.number("block_count")
    heads = header.numbers("attention.head_count", num_layers) if num_layers else None
    if not num_layers or not heads:
        return None
    num_heads = sum(header.numbers("attention.head_count_kv", num_layers) or heads)
    width = (header.number("embedding_length") or 0) // max(1, heads[0])
    is_whole = "split.count" not in header.metadata and not any(
        kind.startswith("type ") for kind in header.tensor_bytes
    )
    return ModelFacts(
        name=name,
        weights_bytes=sum(header.tensor_bytes.values()) if is_whole else file_bytes,
        n_ctx_train=header.number("context_length") or _DEFAULT_CONTEXT,
        kv_width_k=num_heads * (header.number("attention.key_length") or width),
        kv_width_v=num_heads * (header.number("attention.value_length") or width),
        vocab_size=header.array_lengths.get("tokenizer.ggml.tokens", 0),
        can_truncate=not any(".ssm." in key or ".wkv." in key for key in header.metadata),
        available_bytes=available_bytes,
    )


def pooling_facts(header: GgufHeader) -> PoolingFacts:
    """Returns what the file says of reading."""
    width = header.number("embedding_length") or 0
    heads = header.numbers("attention.head_count", header.number("block_count") or 1)
    labels = header.metadata.get(f"{header.architecture}.classifier.output_labels")
    named = tuple(str(label) for label in labels) if isinstance(labels, list) else ()
    return PoolingFacts(
        has_cache=header.architecture not in _WITHOUT_CACHE,
        looks_ahead=header.metadata.get(f"{header.architecture}.attention.causal") is False,
        mode=_MODES.get(header.number("pooling_type") or 0),
        labels=named or ("LABEL_0",),
        dimensions=width,
        num_heads=max(1, heads[0]) if heads else 1,
        inner_width=header.number("feed_forward_length") or 4 * width,
        num_head_outputs=head_outputs(header.tensor_shapes),
    )


def head_outputs(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Returns how many numbers the classification head among these tensors gives; None where there is none."""
    for name in _HEAD_TENSORS:
        shape = shapes.get(name)
        if shape is not None:
            return shape[1] if len(shape) > 1 else 1
    return None
