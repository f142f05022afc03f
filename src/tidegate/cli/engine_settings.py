"""The settings that an engine is told of, as it is told them. Pure."""

from tidegate.cli.settings import AdmissionSettings, Settings
from tidegate.engine.options import EngineOptions
from tidegate.inference.turn_rule import TurnRule


def told_engine(settings: Settings, model_path: str | None) -> EngineOptions:
    """Returns what follows from the settings alone: nothing of what was loaded, or lies in a folder."""
    engine = settings.engine
    match engine.kind:
        case "llama" | "scripted" | "simulated" as backend:
            pass
        case _:
            raise RuntimeError(f"the {engine.kind} engine is no process of ours")
    return EngineOptions(
        backend=backend,
        model_path=model_path,
        max_model_len=settings.model.max_model_len,
        max_sequences=engine.max_sequences,
        kv_tokens=engine.num_blocks * engine.block_tokens if engine.num_blocks is not None else None,
        block_tokens=engine.block_tokens,
        max_step_tokens=engine.max_step_tokens,
        prefill_chunk_tokens=engine.prefill_chunk_tokens,
        num_threads=engine.threads,
        num_gpu_layers=engine.gpu_layers,
        main_gpu=engine.main_gpu,
        tensor_split=engine.tensor_split,
        flash_attn=engine.flash_attention,
        kv_layout=engine.kv_layout,
        kv_type_k=engine.kv_type_k,
        kv_type_v=engine.kv_type_v,
        simulated_model=engine.simulated_model,
        has_costs=engine.simulated_cost,
        grammar_threads=settings.grammar.compile_threads,
        grammar_cache_entries=settings.grammar.cache_entries,
        grammar_cache_bytes=settings.grammar.cache_bytes,
        speculative=engine.speculative,
        max_draft_tokens=engine.max_draft_tokens,
        repeatable=engine.repeatable,
        prefix_cache=engine.prefix_cache,
        embeddings=engine.embeddings,
        pooling=engine.pooling,
        embedding_tokens=engine.embedding_tokens,
        simulated_labels=engine.simulated_labels,
        priority_step_s=turn_rule(settings.admission).priority_step_s,
    )


def turn_rule(admission: AdmissionSettings) -> TurnRule:
    """Returns how priorities count."""
    return TurnRule(admission.priority_step_s if admission.policy == "priority" else None)
