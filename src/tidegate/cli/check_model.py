"""Checks of `tidegate doctor` on the model file and on memory: facts in, findings out. Pure."""

from dataclasses import dataclass, field
from pathlib import Path

from tidegate.cli.finding import Finding, megabytes, ok, problem, warning
from tidegate.cli.gguf_header import GgufHeader
from tidegate.cli.grammar_loading import LoadedGrammar
from tidegate.cli.memory_estimate import MemoryEstimate, estimate_memory
from tidegate.cli.settings import Settings

_SLOW_PREFILL_TYPES = frozenset({"Q4_1", "Q5_0", "Q5_1"})
"""Types that llama.cpp does not repack for its matrix kernels on a CPU."""


@dataclass(frozen=True, slots=True)
class ModelFileFacts:
    """`fault` says why the file's head could not be read; then `header` is None. `missing`: shards that are absent."""

    path: Path
    origin: str
    num_bytes: int
    header: GgufHeader | None = None
    fault: str | None = None
    missing: tuple[str, ...] = field(default=())


def check_model_file(facts: ModelFileFacts) -> Finding:
    """Whether the file is whole and holds a model."""
    subject = "model file"
    where = f"{facts.path} ({facts.origin})"
    if facts.missing:
        return problem(subject, f"{where}: {len(facts.missing)} parts are absent", f"download {facts.missing[0]} too")
    header = facts.header
    if header is None:
        advice = "download the .gguf file again; a Git LFS pointer or weights in another format do not work"
        return problem(subject, f"{where}: {facts.fault}", advice)
    if header.text("tokenizer.ggml.model") is None:
        return problem(subject, f"{where} holds no vocabulary", "take the model itself, not a part of one")
    if facts.num_bytes < header.needed_bytes:
        found = f"{where} is cut off: {facts.num_bytes:,} bytes of {header.needed_bytes:,}"
        return problem(subject, found, "download it again")
    context = header.number("context_length")
    shown = f"{header.architecture}, mostly {header.main_type}, {megabytes(facts.num_bytes)}"
    return ok(subject, f"{where}: {shown}, context {context:,} tokens" if context else f"{where}: {shown}")


def check_weight_type(header: GgufHeader, settings: Settings) -> Finding | None:
    """A hint where another quantisation of the same model would read prompts faster."""
    if header.main_type not in _SLOW_PREFILL_TYPES or (settings.engine.gpu_layers or 0) > 0:
        return None
    advice = "the same model in Q4_0 or Q8_0 reads prompts faster on a CPU"
    return ok("weights", f"{header.main_type}, for which llama.cpp has no repacked kernels", advice)


def check_template(template: str | None, settings: Settings, load_fault: str | None) -> Finding:
    """Whether tokenizer and chat template work. `template` is the one in the file; `load_fault` what loading said."""
    subject = "chat template"
    if load_fault is not None:
        return problem(subject, load_fault, "give a template that works: tidegate serve --chat-template FILE")
    if settings.model.chat_template is not None:
        return ok(subject, f"compiles: {settings.model.chat_template}")
    if template is None:
        advice = "use /v1/completions, or give the model's own template: --chat-template FILE"
        return warning(subject, "the model file has none; a plain default is used", advice)
    return ok(subject, "the model's own; it compiles")


def check_grammar(settings: Settings, loaded: LoadedGrammar) -> Finding:
    """Whether schemas and grammars can be enforced with the served model's vocabulary."""
    subject = "structured output"
    if loaded.served.identity is not None:
        return ok(subject, f"by {loaded.served.identity}")
    if loaded.warning is None and not settings.grammar.required:
        return ok(subject, "off: grammar.backend is none")
    advice = "choose another grammar.backend: llguidance is built in"
    found = loaded.warning or "grammar.required is set, and grammar.backend is none"
    return problem(subject, found, advice) if settings.grammar.required else warning(subject, found, advice)


def check_memory(
    header: GgufHeader, weights_bytes: int, settings: Settings, available_bytes: int | None
) -> Finding | None:
    """Compares an estimate with what is free. The engine's own plan is exact, and is made when it starts."""
    estimate = estimate_memory(header, weights_bytes, settings)
    if estimate is None:
        return ok("memory", "not estimated: the file does not say how large its cache is")
    if (settings.engine.gpu_layers or 0) > 0:
        return ok("memory", f"{_sums(estimate)}; how much of it lies on the GPU is not estimated")
    if available_bytes is None:
        return ok("memory", f"{_sums(estimate)}; how much is free cannot be read on this system")
    free = f"{megabytes(available_bytes)} free"
    if available_bytes < estimate.least_bytes:
        advice = "free memory, take a smaller model, or lower --max-model-len"
        return problem("memory", f"{_sums(estimate)}, {free}: not enough for one sequence", advice)
    if available_bytes < estimate.full_bytes:
        advice = "lower --max-model-len or --max-sequences if many long requests are expected"
        found = f"{_sums(estimate)}, {free}: long requests will share what there is"
        return warning("memory", found, advice)
    return ok("memory", f"{_sums(estimate)}, {free}")


def _sums(estimate: MemoryEstimate) -> str:
    cache = estimate.full_bytes - estimate.weights_bytes
    return (
        f"about {megabytes(estimate.weights_bytes)} for weights and up to {megabytes(cache)} for cache and buffers "
        f"({estimate.kv_bytes_per_token:,} bytes a token, {estimate.model_len:,} tokens a sequence)"
    )
