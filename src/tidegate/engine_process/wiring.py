"""The engine process's composition root: the only place that names backends and choosers.

Each is imported only when it is asked for: a scripted engine loads no shared library.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from tidegate.clock import Clock
from tidegate.core.backend import Backend, BackendCaps
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chooser
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.pooling_backend import PoolingBackend
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.options import EngineOptions
from tidegate.engine_process.compile_pool import CompilePool, PoolLimits
from tidegate.engine_process.metered_compiler import MeteredCompiler
from tidegate.grammar.matcher import TokenTable
from tidegate.inference.pooling import PoolingMode
from tidegate.inference.turn_rule import TurnRule
from tidegate.sizing.step_size import step_tokens

PREFILL_CHUNK_TOKENS = 64
"""Prompt tokens of a step that also decodes, where nobody says: on a CPU, 0.92 of the best rate in an eighth of the
time (bench/prefill_chunks.py)."""


@dataclass(frozen=True, slots=True)
class Grammars:
    """Who enforces grammars in this engine; nobody, for the reason `fault` where it was not meant to be so."""

    rows: GrammarRows | None = None
    pool: CompilePool | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    core: EngineCore
    backend: Backend
    grammars: Grammars
    pooling: PoolingBackend | None = None

    def close(self) -> None:
        """Gives back what the backend and the compiling threads hold."""
        if self.grammars.pool is not None:
            self.grammars.pool.close()
        if self.pooling is not None:
            self.pooling.close()
        self.backend.close()


def build_engine(options: EngineOptions, clock: Clock) -> BuiltEngine:
    """Loads what the options name. Raises whatever the loading raises; the message is for the operator.

    Only a grammar backend that cannot be used keeps no engine from starting.
    """
    backend, chooser, grammars, pooling = _BUILDERS[options.backend](options, clock)
    core = EngineCore(
        backend,
        chooser,
        _limits(options, _calibrate(backend, options)),
        grammars=grammars.pool,
        draft_filter=grammars.rows,
        pooling=pooling,
        turns=TurnRule(options.priority_step_s),
    )
    return BuiltEngine(core, backend, grammars, pooling)


def _calibrate(backend: Backend, options: EngineOptions) -> int | None:
    """Lets a backend that can be calibrated find its threads; returns the prompt tokens of a step beside decodes."""
    if options.backend != "llama":
        return None
    from tidegate.backends.llama_cpp.backend import LlamaCppBackend
    from tidegate.engine_process.calibrated import find_calibration

    if not isinstance(backend, LlamaCppBackend):
        return None  # a model that only reads has no steps
    return find_calibration(backend, options).prefill_chunk_tokens


def _limits(options: EngineOptions, calibrated_chunk: int | None) -> StepLimits:
    # The script says how many tokens a step of a scripted engine brings: nothing is guessed there.
    is_speculative = options.speculative == "prompt_lookup" and options.backend != "scripted"
    return StepLimits(
        max_prefill_tokens=options.prefill_chunk_tokens or calibrated_chunk or PREFILL_CHUNK_TOKENS,
        max_draft_tokens=options.max_draft_tokens if is_speculative else 0,
        # What a scripted engine finds in a cache is its script's to say.
        has_prefix_cache=options.prefix_cache and options.backend != "scripted",
    )


def build_grammars(
    options: EngineOptions, clock: Clock, caps: BackendCaps, table: Callable[[], TokenTable]
) -> Grammars:
    """Makes the compiler that the options name for the tokens of `table`. Raises nothing: `fault` says why not."""
    from tidegate.grammar.registry import ENTRY_POINT_GROUP, find_backend

    try:
        make_compiler = find_backend(options.grammar_backend, entry_points(group=ENTRY_POINT_GROUP))
        if make_compiler is None:
            return Grammars()
        compiler = MeteredCompiler(make_compiler(table()), clock)
        max_draft_tokens = options.max_draft_tokens if options.speculative != "off" else 0
        shape = GrammarShape(caps.max_sequences, max_draft_tokens, caps.vocab_size, caps.eos_token_ids)
        rows = GrammarRows(compiler, shape)
    except Exception as error:
        return Grammars(fault=f"{type(error).__name__}: {error}")
    limits = PoolLimits(options.grammar_threads, options.grammar_cache_entries, options.grammar_cache_bytes)
    return Grammars(rows, CompilePool(compiler, caps.weights_digest, clock, limits))


_Built = tuple[Backend, Chooser, Grammars, PoolingBackend | None]


def _build_llama(options: EngineOptions, clock: Clock) -> _Built:
    from tidegate.backends.llama_cpp.devices import uses_gpu
    from tidegate.backends.llama_cpp.library import load_library
    from tidegate.backends.llama_cpp.open_model import open_model
    from tidegate.sizing.llama_cpp_options import llama_cpp_options

    on_gpu = uses_gpu(load_library().api, options.num_gpu_layers)
    opened = open_model(llama_cpp_options(options, on_gpu=on_gpu))
    backend = opened.backend
    has_words = backend.caps.generates
    grammars = build_grammars(options, clock, backend.caps, backend.token_table) if has_words else Grammars()
    return _with_sampler(backend, grammars, opened.pooling)


def _build_simulated(options: EngineOptions, clock: Clock) -> _Built:
    from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape

    max_model_len = options.max_model_len or SimulatedShape().max_model_len
    shape = SimulatedShape(
        max_model_len=max_model_len,
        max_sequences=options.max_sequences,
        max_step_tokens=step_tokens(options.max_step_tokens, options.max_sequences, on_gpu=False),
        num_blocks=_num_blocks(options, max_model_len),
        block_tokens=options.block_tokens,
        num_seq_ids=2 * options.max_sequences,
        generates=options.simulated_model != "encoder",
    )
    elapse = time.sleep if options.has_costs else None
    model = SimulatedModel(options.simulated_model) if shape.generates else SimulatedModel.SUCCESSOR
    backend = SimulatedBackend(model, shape, elapse=elapse)
    pooling = _simulate_pooling(options, backend.caps, elapse)
    grammars = build_grammars(options, clock, backend.caps, backend.token_table) if shape.generates else Grammars()
    return _with_sampler(backend, grammars, pooling)


def _simulate_pooling(
    options: EngineOptions, caps: BackendCaps, elapse: Callable[[float], None] | None
) -> PoolingBackend | None:
    from tidegate.backends.simulated_pooling import SimulatedPooling

    if options.embeddings == "off" and caps.generates:
        return None
    mode = PoolingMode.MEAN if options.pooling == "auto" else PoolingMode(options.pooling)
    longest = min(options.embedding_tokens or caps.max_model_len, caps.max_model_len)
    return SimulatedPooling(
        mode, vocab_size=caps.vocab_size, max_input_tokens=longest, labels=options.simulated_labels, elapse=elapse
    )


def _with_sampler(backend: Backend, grammars: Grammars, pooling: PoolingBackend | None) -> _Built:
    chooser = SamplerChain(backend.caps.vocab_size, backend.caps.eos_token_ids, grammars.rows)
    return backend, chooser, grammars, pooling


def _build_scripted(options: EngineOptions, clock: Clock) -> _Built:  # noqa: ARG001 - a script needs no grammar
    from tidegate.backends.scripted import ScriptedBackend, ScriptPlayer

    max_model_len = options.max_model_len or 131_072
    backend = ScriptedBackend(
        max_sequences=options.max_sequences,
        max_model_len=max_model_len,
        num_blocks=_num_blocks(options, max_model_len),
        block_tokens=options.block_tokens,
        max_step_tokens=step_tokens(options.max_step_tokens, options.max_sequences, on_gpu=False),
    )
    return backend, ScriptPlayer(), Grammars(), _simulate_pooling(options, backend.caps, None)


def _num_blocks(options: EngineOptions, max_model_len: int) -> int:
    """Blocks of an engine without a model: room for every sequence at full length, up to a million tokens."""
    kv_tokens = options.kv_tokens or max(max_model_len, min(max_model_len * options.max_sequences, 1 << 20))
    return max(1, -(-kv_tokens // options.block_tokens))


_BUILDERS: dict[str, Callable[[EngineOptions, Clock], _Built]] = {
    "llama": _build_llama,
    "scripted": _build_scripted,
    "simulated": _build_simulated,
}
