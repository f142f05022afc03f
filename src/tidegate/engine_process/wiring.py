"""The engine process's composition root: the only place that names backends and choosers.

Each is imported only when it is asked for: a scripted engine loads no shared library.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.core.backend import Backend
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chooser
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.options import EngineOptions


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    core: EngineCore
    backend: Backend

    def close(self) -> None:
        """Gives back what the backend holds."""
        self.backend.close()


def build_engine(options: EngineOptions) -> BuiltEngine:
    """Loads what the options name. Raises whatever the loading raises; the message is for the operator."""
    backend, chooser = _BUILDERS[options.backend](options)
    return BuiltEngine(EngineCore(backend, chooser, _limits(options)), backend)


def _limits(options: EngineOptions) -> StepLimits:
    # The script says how many tokens a step of a scripted engine brings: nothing is guessed there.
    is_speculative = options.speculative == "prompt_lookup" and options.backend != "scripted"
    return StepLimits(
        max_prefill_tokens=options.prefill_chunk_tokens or StepLimits().max_prefill_tokens,
        max_draft_tokens=options.max_draft_tokens if is_speculative else 0,
    )


def _build_llama(options: EngineOptions) -> tuple[Backend, Chooser]:
    from tidegate.backends.llama_cpp.backend import LlamaCppBackend
    from tidegate.backends.llama_cpp.options import LlamaCppOptions

    if options.model_path is None:
        raise ValueError("model_path is required")
    backend = LlamaCppBackend(
        LlamaCppOptions(
            model_path=options.model_path,
            max_model_len=options.max_model_len,
            max_sequences=options.max_sequences,
            kv_tokens=options.kv_tokens,
            block_tokens=options.block_tokens,
            max_step_tokens=options.max_step_tokens,
            n_threads=options.num_threads,
            n_gpu_layers=options.num_gpu_layers,
            main_gpu=options.main_gpu,
            tensor_split=options.tensor_split,
            flash_attn=options.flash_attn,
            kv_layout=options.kv_layout,
            kv_type_k=options.kv_type_k,
            kv_type_v=options.kv_type_v,
        )
    )
    return backend, SamplerChain(backend.caps.vocab_size, backend.caps.eos_token_ids)


def _build_simulated(options: EngineOptions) -> tuple[Backend, Chooser]:
    from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape

    max_model_len = options.max_model_len or SimulatedShape().max_model_len
    shape = SimulatedShape(
        max_model_len=max_model_len,
        max_sequences=options.max_sequences,
        max_step_tokens=options.max_step_tokens,
        num_blocks=_num_blocks(options, max_model_len),
        block_tokens=options.block_tokens,
    )
    elapse = time.sleep if options.has_costs else None
    backend = SimulatedBackend(SimulatedModel(options.simulated_model), shape, elapse=elapse)
    return backend, SamplerChain(backend.caps.vocab_size, backend.caps.eos_token_ids)


def _build_scripted(options: EngineOptions) -> tuple[Backend, Chooser]:
    from tidegate.backends.scripted import ScriptedBackend, ScriptPlayer

    max_model_len = options.max_model_len or 131_072
    backend = ScriptedBackend(
        max_sequences=options.max_sequences,
        max_model_len=max_model_len,
        num_blocks=_num_blocks(options, max_model_len),
        block_tokens=options.block_tokens,
        max_step_tokens=options.max_step_tokens,
    )
    return backend, ScriptPlayer()


def _num_blocks(options: EngineOptions, max_model_len: int) -> int:
    """Blocks of an engine without a model: room for every sequence at full length, up to a million tokens."""
    kv_tokens = options.kv_tokens or max(max_model_len, min(max_model_len * options.max_sequences, 1 << 20))
    return max(1, -(-kv_tokens // options.block_tokens))


_BUILDERS: dict[str, Callable[[EngineOptions], tuple[Backend, Chooser]]] = {
    "llama": _build_llama,
    "scripted": _build_scripted,
    "simulated": _build_simulated,
}
