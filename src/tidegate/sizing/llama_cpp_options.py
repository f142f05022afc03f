"""What the operator chooses for the llama.cpp backend. Everything left out is decided by `memory_plan`."""

import math
from typing import Literal

import msgspec

from tidegate.engine.options import KV_TYPE_BYTES, EngineOptions, KvType, PoolingChoice
from tidegate.sizing.start_error import StartError
from tidegate.sizing.step_size import step_tokens

KvLayout = Literal["per_sequence", "unified"]

# LLAMA_MAX_SEQ in llama.cpp; sequence ids are bits of a fixed set there.
MAX_SEQUENCES = 256


class LlamaCppOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `LlamaCppBackend`.

    `max_model_len`: longest sequence in tokens; None: what the model was trained for, at most 4,096, and what fits.
    `max_sequences`: how many sequences may be in one forward pass.
    `kv_tokens`: size of the whole cache in tokens; None: room for every sequence at full length, if memory allows.
    `block_tokens`: unit of accounting, no more. `max_step_tokens`: most tokens in one forward pass.
    `n_threads`: None: one for each core that this process may use, fewer while others take cores away.
    `n_gpu_layers`: None: all layers, where the library was built for a GPU.
    `flash_attn`: `auto` on a CPU is off for `per_sequence` and on for `unified`; on a GPU it is llama.cpp's choice.
    `kv_layout`: `per_sequence` gives each sequence its own buffer: faster, and sharing is exact, but every sequence
    takes the space of the longest. `unified` is one pool. `auto` is per sequence where that fits.
    `embeddings`: whether prompts can be read without generating; `auto` where that fits beside the cache, and nothing
    is allocated before the first one. `pooling`: `auto` is the file's own, or the mean. `embedding_tokens`: longest
    such prompt beside a model that generates; None: what the model was trained for, at most 2,048.
    `repeatable`: logits are equal to the last bit whatever the batch; needs a CPU, `per_sequence`, no flash attention.
    `prefix_cache`: make sequence ids for what is only cached, where they cost nothing.
    `memory_bytes`: the most of the machine's free memory that is planned with; None: all of it. `num_sharing` engines
    share the GPUs evenly.
    """

    model_path: str
    max_model_len: int | None = None
    max_sequences: int = 32
    kv_tokens: int | None = None
    block_tokens: int = 16
    max_step_tokens: int = 512
    n_threads: int | None = None
    n_gpu_layers: int | None = None
    main_gpu: int = 0
    tensor_split: tuple[float, ...] = ()
    flash_attn: Literal["auto", "on", "off"] = "auto"
    kv_layout: Literal["auto", "per_sequence", "unified"] = "auto"
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    repeatable: bool = False
    prefix_cache: bool = True
    embeddings: Literal["auto", "on", "off"] = "auto"
    pooling: PoolingChoice = "auto"
    embedding_tokens: int | None = None
    memory_bytes: int | None = None
    num_sharing: int = 1


def llama_cpp_options(options: EngineOptions, *, on_gpu: bool) -> LlamaCppOptions:
    """Returns what the backend is told, of what the engine was. Raises StartError when no model is named."""
    if options.model_path is None:
        raise StartError("model_path is required")
    return LlamaCppOptions(
        model_path=options.model_path,
        max_model_len=options.max_model_len,
        max_sequences=options.max_sequences,
        kv_tokens=options.kv_tokens,
        block_tokens=options.block_tokens,
        max_step_tokens=step_tokens(options.max_step_tokens, options.max_sequences, on_gpu=on_gpu),
        n_threads=options.num_threads,
        n_gpu_layers=options.num_gpu_layers,
        main_gpu=options.main_gpu,
        tensor_split=options.tensor_split,
        flash_attn=options.flash_attn,
        kv_layout=options.kv_layout,
        kv_type_k=options.kv_type_k,
        kv_type_v=options.kv_type_v,
        repeatable=options.repeatable,
        prefix_cache=options.prefix_cache,
        embeddings=options.embeddings,
        pooling=options.pooling,
        embedding_tokens=options.embedding_tokens,
        memory_bytes=options.memory_bytes,
        num_sharing=options.num_sharing,
    )


def check_options(options: LlamaCppOptions) -> None:
    """Raises StartError naming the first option that is out of range."""
    bounds: list[tuple[str, int | None, int, int]] = [
        ("max_model_len", options.max_model_len, 1, 1 << 24),
        ("max_sequences", options.max_sequences, 1, MAX_SEQUENCES),
        ("kv_tokens", options.kv_tokens, 1, 1 << 31),
        ("block_tokens", options.block_tokens, 1, 1 << 16),
        ("max_step_tokens", options.max_step_tokens, 1, 1 << 16),
        ("embedding_tokens", options.embedding_tokens, 1, 1 << 24),
        ("n_threads", options.n_threads, 1, 512),
        ("n_gpu_layers", options.n_gpu_layers, 0, 1 << 16),
        ("main_gpu", options.main_gpu, 0, 255),
    ]
    for name, value, least, most in bounds:
        if value is not None and not least <= value <= most:
            raise StartError(f"{name} is {value}; it must be between {least} and {most}")
    if options.max_step_tokens < options.max_sequences:
        raise StartError(
            f"max_step_tokens ({options.max_step_tokens}) must be at least max_sequences ({options.max_sequences}): "
            "a step feeds one token for each running sequence"
        )
    if options.tensor_split and not (min(options.tensor_split) >= 0.0 < sum(options.tensor_split) < math.inf):
        raise StartError("tensor_split must hold shares from 0 up, not all of them 0: as in [0.6, 0.4]")
    if options.repeatable:
        _check_repeatable(options)
    if options.flash_attn == "off" and KV_TYPE_BYTES[options.kv_type_v] < 2.0:
        raise StartError(
            f"kv_type_v {options.kv_type_v} needs flash attention: set flash_attn to auto or on, or kv_type_v to f16"
        )


def _check_repeatable(options: LlamaCppOptions) -> None:
    """Raises StartError where the library's kernels are known to depend on the batch."""
    if options.kv_layout == "unified" or options.flash_attn == "on" or KV_TYPE_BYTES[options.kv_type_v] < 2.0:
        raise StartError(
            "repeatable results need a cache with a buffer for each sequence, and no flash attention: set kv_layout "
            "and flash_attn to auto, and kv_type_v to f16, or set repeatable to false"
        )
