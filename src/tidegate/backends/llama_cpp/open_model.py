"""Opens a GGUF model for all that it can do: generate, read, or both. The only place that decides which."""

import logging
from dataclasses import dataclass
from pathlib import Path

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.library import Library, load_library
from tidegate.backends.llama_cpp.model import LlamaModel
from tidegate.backends.llama_cpp.pooling import LlamaPooling
from tidegate.backends.llama_cpp.pooling_context import read_pooling_facts
from tidegate.backends.llama_cpp.reader import LlamaReader
from tidegate.backends.llama_cpp.weights import weight_files
from tidegate.sizing.budget import Budget, plan_budget
from tidegate.sizing.llama_cpp_options import LlamaCppOptions, check_options

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
        budget = plan_budget(model.facts(), read_pooling_facts(library, model, files), options)
    except BaseException:
        model.close()
        raise
    if budget.lacking is not None:
        logger.warning("no embeddings: %s", budget.lacking)
    if budget.memory is None:
        return _open_reader(library, model, files, options, budget)
    return _open_generator(library, model, options, budget)


def _open_generator(library: Library, model: LlamaModel, options: LlamaCppOptions, budget: Budget) -> OpenModel:
    backend = LlamaCppBackend(options, model, budget.memory)
    if budget.pooling is None:
        return OpenModel(backend, None)
    pooling = LlamaPooling(library, model, options, budget.pooling, backend.caps.vocab_size)
    pooling.max_threads = lambda: backend.max_threads
    try:
        if options.embeddings == "on":
            pooling.open()
    except BaseException:
        backend.close()
        raise
    return OpenModel(backend, pooling)


def _open_reader(
    library: Library, model: LlamaModel, files: list[Path], options: LlamaCppOptions, budget: Budget
) -> OpenModel:
    assert budget.pooling is not None
    reader = LlamaReader(library, model, files, options, budget.pooling, budget.describe())
    pooling = LlamaPooling(library, model, options, budget.pooling, reader.caps.vocab_size)
    pooling.open()
    return OpenModel(reader, pooling)
