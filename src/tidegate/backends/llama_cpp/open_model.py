"""Opens a GGUF model for all that it can do: generate, read, or both. The only place that decides which."""

import logging
from dataclasses import dataclass
from pathlib import Path

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.library import Library, load_library
from tidegate.backends.llama_cpp.memory_plan import ModelFacts, mib, plan_memory
from tidegate.backends.llama_cpp.model import LlamaModel
from tidegate.backends.llama_cpp.options import LlamaCppOptions, check_options
from tidegate.backends.llama_cpp.pooling import LlamaPooling
from tidegate.backends.llama_cpp.pooling_context import read_pooling_facts
from tidegate.backends.llama_cpp.pooling_plan import PoolingFacts, PoolingPlan, plan_pooling
from tidegate.backends.llama_cpp.reader import LlamaReader
from tidegate.backends.llama_cpp.start_error import StartError
from tidegate.backends.llama_cpp.weights import weight_files

logger = logging.getLogger("tidegate.llama_cpp")


@dataclass(frozen=True, slots=True)
class OpenModel:
    """Close `pooling` before `backend`: they share weights. The budget is `backend.caps.memory`."""

    backend: LlamaCppBackend | LlamaReader
    pooling: LlamaPooling | None


def open_model(options: LlamaCppOptions) -> OpenModel:
    """Loads the model and takes memory for it. Raises StartError saying what to change."""
    files = weight_files(Path(options.model_path))
    check_options(options)
    library = load_library()
    model = LlamaModel(library, files[0], options)
    try:
        facts, reading = model.facts(), read_pooling_facts(library, model)
        if not reading.has_cache:
            return _open_reader(library, model, files, options, plan_pooling(facts, reading, options))
    except BaseException:
        model.close()
        raise
    return _open_generator(library, model, options, _fitting(facts, reading, options))


def _fitting(facts: ModelFacts, reading: PoolingFacts, options: LlamaCppOptions) -> PoolingPlan | None:
    """Returns how prompts are read beside a cache; None where nobody wants it, or `auto` finds no room."""
    if options.embeddings == "off":
        return None
    plan = plan_pooling(facts, reading, options)
    if options.embeddings == "auto":
        try:
            plan_memory(facts, options, reserved_bytes=plan.total_bytes)
        except StartError as error:
            logger.warning("no embeddings: %s", error)
            return None
    return plan


def _open_generator(
    library: Library, model: LlamaModel, options: LlamaCppOptions, plan: PoolingPlan | None
) -> OpenModel:
    reserved_bytes = plan.total_bytes if plan is not None else 0
    backend = LlamaCppBackend(options, model, reserved_bytes=reserved_bytes)
    if plan is None:
        return OpenModel(backend, None)
    pooling = LlamaPooling(library, model, options, plan, backend.caps.vocab_size)
    pooling.max_threads = lambda: backend.max_threads
    try:
        if options.embeddings == "on":
            pooling.open()
    except BaseException:
        backend.close()
        raise
    return OpenModel(backend, pooling)


def _open_reader(
    library: Library, model: LlamaModel, files: list[Path], options: LlamaCppOptions, plan: PoolingPlan
) -> OpenModel:
    facts = model.facts()
    need = facts.weights_bytes + plan.total_bytes
    if facts.available_bytes is not None and need > facts.available_bytes:
        raise StartError(
            f"{facts.name} needs {mib(facts.weights_bytes)} for weights and {mib(plan.total_bytes)} for passes of "
            f"{plan.pass_tokens} tokens, but {mib(facts.available_bytes)} are free: lower max_model_len, or take a "
            "smaller model"
        )
    room = "unknown" if facts.available_bytes is None else mib(facts.available_bytes)
    sums = (
        f"weights         {mib(facts.weights_bytes)}",
        plan.describe(),
        f"total           {mib(need)} of {room} free",
    )
    reader = LlamaReader(library, model, files, options, plan, "\n".join(sums))
    pooling = LlamaPooling(library, model, options, plan, reader.caps.vocab_size)
    pooling.open()
    return OpenModel(reader, pooling)
