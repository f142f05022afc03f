"""What a model file says about reading, and a context to read in, beside the one that generates or alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.backends.llama_cpp.library import Library
from tidegate.backends.llama_cpp.model import GGML_TYPES, LlamaModel, flash_attention, thread_count
from tidegate.inference.pooling import PoolingMode
from tidegate.sizing.gguf_header import GgufError, read_gguf_header
from tidegate.sizing.header_facts import MODE_NUMBERS, head_outputs
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.pooling_plan import PoolingFacts, PoolingPlan
from tidegate.sizing.start_error import StartError

_NO_POOLING = 0
_MODES = {str(number): mode for mode, number in MODE_NUMBERS.items()}

# Enough to ask a context whether its model has a cache.
_PROBE_TOKENS = 8


def read_pooling_facts(library: Library, model: LlamaModel, files: Sequence[Path]) -> PoolingFacts:
    """Returns what the model file says. Raises StartError when llama.cpp cannot make a context for it."""
    api, handle = library.api, model.handle
    num_outputs = api.llama_model_n_cls_out(handle)
    labels = [api.llama_model_cls_label(handle, index) for index in range(num_outputs)]
    width = api.llama_model_n_embd_out(handle)
    mode = _MODES.get(model.architecture_value("pooling_type"))
    return PoolingFacts(
        has_cache=_has_cache(library, model),
        looks_ahead=model.architecture_value("attention.causal") == "false",
        mode=mode,
        labels=tuple(
            label.decode("utf-8", "replace") if label else f"LABEL_{index}" for index, label in enumerate(labels)
        ),
        dimensions=width,
        num_heads=max(1, api.llama_model_n_head(handle)),
        inner_width=model.number("feed_forward_length", 4 * width),
        num_head_outputs=_head_outputs(files) if mode is PoolingMode.RANK else None,
    )


def _head_outputs(files: Sequence[Path]) -> int | None:
    """llama.cpp does not tell whether a head's tensors are there."""
    try:
        headers = [read_gguf_header(file) for file in files]
    except (GgufError, OSError) as error:
        raise StartError(f"the head of {files[0]} cannot be read ({error}): download it again") from error
    found = [head_outputs(header.tensor_shapes) for header in headers]
    return next((number for number in found if number is not None), None)


def _has_cache(library: Library, model: LlamaModel) -> bool:
    """Whether the model keeps keys and values, or a state: which architectures do is nowhere declared."""
    api = library.api
    params = api.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = _PROBE_TOKENS
    params.n_seq_max = params.n_threads = params.n_threads_batch = 1
    params.n_outputs_max = _PROBE_TOKENS
    params.no_perf = True
    context = _made(library, model, params, "to ask for its cache")
    has_cache = bool(api.llama_get_memory(context))
    api.llama_free(context)
    return has_cache


def open_pooling_context(library: Library, model: LlamaModel, options: LlamaCppOptions, plan: PoolingPlan) -> Any:  # noqa: ANN401
    """Returns a context for the plan. Raises StartError when it cannot be made."""
    api = library.api
    params = api.llama_context_default_params()
    params.n_ctx = plan.n_ctx or plan.pass_tokens
    params.n_batch = params.n_ubatch = params.n_outputs_max = plan.pass_tokens
    params.n_seq_max = plan.max_batch_inputs
    params.n_threads = params.n_threads_batch = thread_count(options)
    params.embeddings = True
    params.pooling_type = _NO_POOLING if plan.in_slices else MODE_NUMBERS[plan.info.mode]
    params.flash_attn_type = flash_attention(api, options, "unified", on_gpu=model.on_gpu)
    params.type_k, params.type_v = GGML_TYPES[options.kv_type_k], GGML_TYPES[options.kv_type_v]
    params.kv_unified = True
    params.swa_full = True
    params.no_perf = True
    return _made(library, model, params, f"for this plan:\n{plan.describe()}\nlower embedding_tokens or max_model_len")


def _made(library: Library, model: LlamaModel, params: Any, purpose: str) -> Any:  # noqa: ANN401 - untyped bindings
    library.recent_errors.clear()
    context = library.api.llama_init_from_model(model.handle, params)
    if not context:
        reason = "; ".join(library.recent_errors) or "no reason given"
        raise StartError(f"llama.cpp cannot make a context ({reason}) {purpose}")
    return context
