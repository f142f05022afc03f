"""Checks of `tidegate doctor` on the model file and on memory: facts in, findings out. Pure."""

from dataclasses import dataclass, field
from pathlib import Path

from tidegate.cli.engine_settings import told_engine
from tidegate.cli.finding import Finding, megabytes, ok, problem, warning
from tidegate.cli.grammar_loading import LoadedGrammar
from tidegate.cli.settings import Settings
from tidegate.sizing.budget import plan_budget
from tidegate.sizing.gguf_header import GgufHeader
from tidegate.sizing.header_facts import model_facts, pooling_facts
from tidegate.sizing.llama_cpp_options import llama_cpp_options
from tidegate.sizing.start_error import StartError

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


def check_weight_type(header: GgufHeader, settings: Settings, *, has_gpu: bool) -> Finding | None:
    """A hint where another quantisation of the same model would read prompts faster."""
    on_gpu = has_gpu and settings.engine.gpu_layers != 0
    if header.main_type not in _SLOW_PREFILL_TYPES or on_gpu:
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


def check_memory(file: ModelFileFacts, settings: Settings, available_bytes: int | None, *, has_gpu: bool) -> Finding:
    """Makes the engine's own plan from the file's head. The engine makes it anew, from what llama.cpp says."""
    subject = "memory"
    on_gpu = has_gpu and settings.engine.gpu_layers != 0
    header, free_bytes = file.header, None if on_gpu else available_bytes
    facts = None if header is None else model_facts(header, file.path.name, file.num_bytes, free_bytes)
    if header is None or facts is None:
        return ok(subject, "not estimated: the file does not say how large its cache is")
    options = llama_cpp_options(told_engine(settings, str(file.path)), on_gpu=on_gpu)
    try:
        budget = plan_budget(facts, pooling_facts(header), options)
    except StartError as error:
        return problem(subject, str(error), "the same as serve would say; `tidegate config` shows the settings")
    sums = ", ".join(" ".join(line.split()) for line in budget.describe().splitlines())
    if on_gpu:
        return ok(subject, f"{sums}; how much of it lies on the GPU is not estimated")
    if available_bytes is None:
        return ok(subject, f"{sums}; how much is free cannot be read on this system")
    if budget.lacking is not None:
        advice = "set engine.embeddings to off if nobody asks for them, or free memory"
        return warning(subject, f"{sums}; no room to read texts for vectors beside it", advice)
    memory = budget.memory
    if memory is not None and memory.n_ctx < memory.max_sequences * memory.max_model_len:
        advice = "lower --max-model-len or --max-sequences if many long requests are expected"
        return warning(subject, f"{sums}: long requests will share what there is", advice)
    return ok(subject, sums)
