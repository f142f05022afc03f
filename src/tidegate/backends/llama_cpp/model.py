"""A loaded model: its facts, and a context with the planned cache."""

import ctypes
from pathlib import Path
from typing import Any

from tidegate.backends.llama_cpp.devices import gpu_memory, uses_gpu
from tidegate.backends.llama_cpp.library import Library
from tidegate.engine.options import KV_TYPE_BYTES
from tidegate.machine import available_bytes, usable_processors
from tidegate.sizing.llama_cpp_options import KvLayout, LlamaCppOptions
from tidegate.sizing.memory_plan import MemoryPlan, ModelFacts
from tidegate.sizing.shared_memory import device_share
from tidegate.sizing.start_error import StartError

# Tokens of one pass over the weights; llama.cpp's own default. Larger ones need larger compute buffers.
MAX_PASS_TOKENS = 512


# enum ggml_type of ggml.h
GGML_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}


class LlamaModel:
    """Owns the model handle. `vocabulary` is llama.cpp's, and lives as long."""

    def __init__(self, library: Library, path: Path, options: LlamaCppOptions) -> None:
        """Loads the weights. Raises StartError when llama.cpp refuses the file."""
        api = library.api
        self._api = api
        self._free_host, self._gpu = available_bytes(), gpu_memory(api)
        params = api.llama_model_default_params()
        params.n_gpu_layers = -1 if options.n_gpu_layers is None else options.n_gpu_layers
        params.main_gpu = options.main_gpu
        max_devices = int(api.llama_max_devices())
        if len(options.tensor_split) > max_devices:
            raise StartError(
                f"tensor_split names {len(options.tensor_split)} GPUs, but this llama.cpp uses at most {max_devices}"
            )
        shares = (ctypes.c_float * max_devices)(*options.tensor_split)
        if options.tensor_split:
            params.tensor_split = ctypes.cast(shares, ctypes.POINTER(ctypes.c_float))
        library.recent_errors.clear()
        self.handle = api.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            reason = "; ".join(library.recent_errors) or "no reason given"
            raise StartError(
                f"llama.cpp cannot load {path} ({reason}): the file may be damaged, or its architecture newer than "
                "this llama.cpp; download it again, or update llama-cpp-python"
            )
        self._path = path
        self._share, self._num_sharing = options.memory_bytes, options.num_sharing
        self.vocabulary = api.llama_model_get_vocab(self.handle)
        self.on_gpu = uses_gpu(api, options.n_gpu_layers)
        self._all_on_gpu = self.on_gpu and (
            options.n_gpu_layers is None or options.n_gpu_layers >= api.llama_model_n_layer(self.handle)
        )

    def facts(self) -> ModelFacts:
        """Returns what the cache's shape depends on. Raises StartError for a model that does not generate."""
        api, model = self._api, self.handle
        if not api.llama_model_has_decoder(model) or api.llama_model_has_encoder(model):
            raise StartError(f"{self._path} is not a decoder-only model: only those can be served")
        head_width = api.llama_model_n_embd(model) // max(1, api.llama_model_n_head(model))
        heads = self._sum("attention.head_count_kv", api.llama_model_n_head_kv(model))
        return ModelFacts(
            name=self._path.name,
            weights_bytes=api.llama_model_size(model),
            n_ctx_train=api.llama_model_n_ctx_train(model),
            kv_width_k=heads * self.number("attention.key_length", head_width),
            kv_width_v=heads * self.number("attention.value_length", head_width),
            vocab_size=api.llama_vocab_n_tokens(self.vocabulary),
            # State that is a running summary cannot be cut to an earlier token.
            can_truncate=not (api.llama_model_is_recurrent(model) or api.llama_model_is_hybrid(model)),
            available_bytes=self._available_bytes(),
        )

    def _available_bytes(self) -> int | None:
        """What is free where the cache will be, or our share of it."""
        if self._all_on_gpu:
            return device_share(self._gpu, self._num_sharing)
        known = [number for number in (self._free_host, self._share) if number is not None]
        return min(known, default=None)

    def end_token_ids(self) -> tuple[int, ...]:
        """Returns every token that ends a generation: end of sequence, of turn, of message."""
        api, vocab = self._api, self.vocabulary
        return tuple(i for i in range(api.llama_vocab_n_tokens(vocab)) if api.llama_vocab_is_eog(vocab, i))

    def number(self, key: str, otherwise: int) -> int:
        """Returns a number of the architecture's metadata; `otherwise` where there is none."""
        text = self.architecture_value(key)
        return int(text) if text.isdecimal() else otherwise

    def _sum(self, key: str, otherwise: int) -> int:
        """Returns the sum over the layers of a number that the metadata has for all of them, or for each."""
        text = self.architecture_value(key)
        if text.startswith("["):
            return sum(int(part) for part in text.strip("[]").split(",") if part.strip().isdecimal())
        return otherwise * int(self._api.llama_model_n_layer(self.handle))

    def architecture_value(self, key: str) -> str:
        """Returns a value of the architecture's metadata as llama.cpp spells it; empty where there is none."""
        return self._text(f"{self._text('general.architecture')}.{key}")

    def _text(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(256)
        length = self._api.llama_model_meta_val_str(self.handle, key.encode(), buffer, 256)
        return buffer.value.decode("utf-8", "replace") if length >= 0 else ""

    def close(self) -> None:
        if self.handle:
            self._api.llama_model_free(self.handle)
            self.handle = None


def open_context(library: Library, model: LlamaModel, options: LlamaCppOptions, plan: MemoryPlan) -> Any:  # noqa: ANN401
    """Returns a context with the planned cache. Raises StartError when it cannot be made."""
    api = library.api
    params = api.llama_context_default_params()
    params.n_ctx = plan.n_ctx
    params.n_batch = plan.max_step_tokens
    params.n_ubatch = min(plan.max_step_tokens, MAX_PASS_TOKENS)
    params.n_seq_max = plan.num_seq_ids
    # Bounds the output buffer and the last part of the compute buffer: rows x vocabulary. llama.cpp aborts the
    # process when a batch wants more, or when it is below the number of sequences.
    params.n_outputs_max = plan.max_step_outputs
    params.n_threads = params.n_threads_batch = thread_count(options)
    params.flash_attn_type = flash_attention(api, options, plan.layout, on_gpu=model.on_gpu)
    params.type_k, params.type_v = GGML_TYPES[options.kv_type_k], GGML_TYPES[options.kv_type_v]
    params.kv_unified = plan.layout == "unified"
    params.swa_full = True  # sliding windows keep all tokens, so that sequences can be cut and shared
    params.no_perf = True
    library.recent_errors.clear()
    context = api.llama_init_from_model(model.handle, params)
    if not context:
        reason = "; ".join(library.recent_errors) or "no reason given"
        raise StartError(
            f"llama.cpp cannot make a context ({reason}) for this plan:\n{plan.describe()}\n"
            "lower max_model_len, max_sequences or kv_tokens"
        )
    return context


def thread_count(options: LlamaCppOptions) -> int:
    """Returns the number of threads to begin with."""
    return options.n_threads if options.n_threads is not None else usable_processors()


def flash_attention(api: Any, options: LlamaCppOptions, layout: KvLayout, *, on_gpu: bool) -> int:  # noqa: ANN401
    """Returns llama.cpp's number for the setting.

    On a CPU `auto` goes by layout, as measured. Without flash attention the cost follows all cells up to the last one
    in use. Per sequence those are the sequence's own: it is 1.1 to 1.6 times faster from 500 tokens on (0.8 to 1.0
    times below 260), and logits are equal to the last bit for other splits and other neighbours, passes over a single
    token excepted. In the unified layout they are everybody's: there flash attention is 1.3 to 3.6 times faster.
    """
    if options.repeatable:
        return int(api.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    if options.flash_attn == "on" or KV_TYPE_BYTES[options.kv_type_v] < 2.0:
        return int(api.LLAMA_FLASH_ATTN_TYPE_ENABLED)
    if options.flash_attn == "off":
        return int(api.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    if on_gpu:
        return int(api.LLAMA_FLASH_ATTN_TYPE_AUTO)
    return int(api.LLAMA_FLASH_ATTN_TYPE_DISABLED if layout == "per_sequence" else api.LLAMA_FLASH_ATTN_TYPE_ENABLED)
