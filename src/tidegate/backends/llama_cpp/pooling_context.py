"""What a model file says about reading, and a context to read in, beside the one that generates or alone."""

from typing import Any

from tidegate.backends.llama_cpp.library import Library
from tidegate.backends.llama_cpp.model import GGML_TYPES, LlamaModel, flash_attention, thread_count
from tidegate.backends.llama_cpp.options import LlamaCppOptions
from tidegate.backends.llama_cpp.pooling_plan import PoolingFacts, PoolingPlan
from tidegate.backends.llama_cpp.start_error import StartError
from tidegate.inference.pooling import PoolingMode

# enum llama_pooling_type of llama.h
_NO_POOLING = 0
POOLING_TYPES = {PoolingMode.MEAN: 1, PoolingMode.CLS: 2, PoolingMode.LAST: 3, PoolingMode.RANK: 4}
_MODES = {str(number): mode for mode, number in POOLING_TYPES.items()}

# Enough to ask a context whether its model has a cache.
_PROBE_TOKENS = 8


def read_pooling_facts(library: Library, model: LlamaModel) -> PoolingFacts:
    """Returns what the model file says. Raises StartError when llama.cpp cannot make a context for it."""
    api, handle = library.api, model.handle
    num_outputs = api.llama_model_n_cls_out(handle)
    labels = [api.llama_model_cls_label(handle, index) for index in range(num_outputs)]
    width = api.llama_model_n_embd_out(handle)
    return PoolingFacts(
        has_cache=_has_cache(library, model),
        looks_ahead=model.architecture_value("attention.causal") == "false",
        mode=_MODES.get(model.architecture_value("pooling_type")),
        labels=tuple(
            label.decode("utf-8", "replace") if label else f"LABEL_{index}" for index, label in enumerate(labels)
        ),
        dimensions=width,
        num_heads=max(1, api.llama_model_n_head(handle)),
        inner_width=model.number("feed_forward_length", 4 * width),
    )


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
    params.pooling_type = _NO_POOLING if plan.in_slices else POOLING_TYPES[plan.info.mode]
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
