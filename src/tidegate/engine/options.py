"""EngineOptions: what the server tells an engine process at its start, as JSON on its command line."""

from typing import Annotated, Any, Literal

import msgspec

BackendName = Literal["llama", "scripted", "simulated"]

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 31)]
Count64 = Annotated[int, msgspec.Meta(ge=1)]
KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
PoolingChoice = Literal["auto", "mean", "cls", "last", "rank"]


KV_TYPE_BYTES: dict[KvType, float] = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
}
"""Bytes of one value of a cached key or value vector, by ggml's block formats (bytes of a block / values in it)."""


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that an engine process can be told. None: the backend decides, from the model and the machine.

    `max_model_len`, `kv_tokens`, `block_tokens`, `max_step_tokens`, `prefill_chunk_tokens` count tokens; `kv_tokens`
    is the size of the whole cache. From `num_threads` on the fields concern llama.cpp, and so does `repeatable`.
    `simulated_model` names a rule of the simulated backend, `encoder` one that only reads; `has_costs` gives its steps
    a declared duration. The rest concerns backends that sample: who enforces grammars (`none` for nobody), how many
    compile at once, how many are kept and in how many bytes, whether tokens are guessed ahead of the model, and how
    many for one sequence and step. `prefix_cache`: whether computed beginnings are kept for other requests, where the
    backend can. `calibration_file` is where what suits the machine is remembered; None: nothing is
    timed. `priority_step_s`: see `TurnRule`; None where priorities do not count.

    `embeddings` and the two after it concern prompts that are only read: whether any are (`auto`: where the model and
    the memory allow, and nothing is taken before the first one comes), how they are pooled (`auto`: as the model says),
    and the longest in tokens beside a model that generates. `simulated_labels` are those of a simulated `rank`.

    `memory_bytes` is the most of this machine's free memory that llama.cpp may plan with, where others share it.
    `num_sharing` engines share its GPUs evenly.
    """

    backend: BackendName
    model_path: str | None = None
    max_model_len: Count | None = None
    max_sequences: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 32
    kv_tokens: Count | None = None
    block_tokens: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 16
    max_step_tokens: Count | None = None
    prefill_chunk_tokens: Count | None = None
    num_threads: Count | None = None
    num_gpu_layers: Annotated[int, msgspec.Meta(ge=0)] | None = None
    main_gpu: Annotated[int, msgspec.Meta(ge=0)] = 0
    tensor_split: tuple[float, ...] = ()
    flash_attn: Literal["auto", "on", "off"] = "auto"
    kv_layout: Literal["auto", "per_sequence", "unified"] = "auto"
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    simulated_model: Literal["successor", "hash", "history", "encoder"] = "successor"
    has_costs: bool = False
    grammar_backend: str = "llguidance"
    grammar_threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    grammar_cache_entries: Count = 1024
    grammar_cache_bytes: Annotated[int, msgspec.Meta(ge=1)] = 256 * 1024 * 1024
    speculative: Literal["off", "prompt_lookup"] = "off"
    max_draft_tokens: Annotated[int, msgspec.Meta(ge=1, le=64)] = 5
    repeatable: bool = False
    prefix_cache: bool = True
    calibration_file: str | None = None
    priority_step_s: Annotated[float, msgspec.Meta(gt=0.0)] | None = 1.0
    embeddings: Literal["auto", "on", "off"] = "auto"
    pooling: PoolingChoice = "auto"
    embedding_tokens: Count | None = None
    simulated_labels: tuple[str, ...] = ()
    memory_bytes: Count64 | None = None
    num_sharing: Count = 1


class OptionsError(Exception):
    """The options cannot be used; the message names the field."""


def encode_options(options: EngineOptions) -> str:
    """Returns the options as one line of JSON."""
    return msgspec.json.encode(options).decode()


def decode_options(text: str, backend: str) -> EngineOptions:
    """Returns the options in `text`, for the named backend. Raises OptionsError."""
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
        options = msgspec.convert({**fields, "backend": backend}, EngineOptions)
    except (msgspec.MsgspecError, ValueError) as error:
        raise OptionsError(f"engine options: {error}") from error
    if options.backend == "llama" and options.model_path is None:
        raise OptionsError("engine options: model_path is required for the backend llama")
    if options.max_step_tokens is not None and options.max_step_tokens < options.max_sequences:
        raise OptionsError(
            f"engine options: max_step_tokens ({options.max_step_tokens}) must be at least max_sequences "
            f"({options.max_sequences}): a step feeds one token for each running sequence"
        )
    return options
