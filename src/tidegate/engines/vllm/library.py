"""vLLM's library as a port: what of it is used, so that a stand-in can be put in its place.

`installed_vllm.py` is the real one. Calls that block run on a thread of their own; the rest belongs to one event loop.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Llm(Protocol):
    """The part of `AsyncLLM` that is used."""

    @property
    def errored(self) -> bool:
        """Whether its engine processes have gone."""
        ...

    def generate(
        self,
        prompt: Any,
        sampling_params: Any,
        request_id: str,
        *,
        trace_headers: Mapping[str, str] | None = None,
        priority: int = 0,
    ) -> AsyncGenerator[Any, None]:
        """Runs one request; cancelling who reads it aborts it. `trace_headers`: W3C Trace Context, by header name."""
        ...

    async def abort(self, request_id: str) -> None: ...

    async def reset_prefix_cache(self) -> bool:
        """Drops cached prompts; False where nothing was dropped because requests run."""
        ...

    def shutdown(self, timeout: float | None = None) -> None:
        """Ends its engine processes. Blocks."""
        ...


@dataclass(frozen=True, slots=True)
class LlmFacts:
    """What a started engine is. `num_blocks` is None where it does not say. `process_id`: the engine's own process.

    `has_tracing`: it sends spans of its own to a collector.
    """

    version: str
    max_model_len: int
    block_tokens: int
    num_blocks: int | None
    has_prefix_cache: bool
    process_id: int | None = None
    has_tracing: bool = False


Record = Callable[[Any, Any], None]
"""Gets vLLM's scheduler and iteration statistics after each of its steps, on the event loop; either may be None."""


class Library(Protocol):
    """What is asked of vLLM."""

    def configure(self, arguments: Mapping[str, Any]) -> Any:
        """Returns a configuration. Blocks. Raises any exception for arguments that will never do."""
        ...

    def start(self, config: Any, record: Record) -> Llm:
        """Starts an engine. Blocks for as long as the model loads. Raises any exception when that fails."""
        ...

    def facts(self, llm: Llm) -> LlmFacts: ...

    def prompt(self, token_ids: list[int], cache_salt: str | None) -> Any:
        """Returns a prompt for `generate`."""
        ...

    def sampling(self, fields: Mapping[str, object]) -> Any:
        """Returns sampling parameters for `generate`, which then gives deltas. Raises what vLLM raises."""
        ...

    def tokenize(self, llm: Llm, text: str) -> list[int] | None:
        """Returns a text's tokens, nothing added; None where the engine has no tokenizer."""
        ...

    def kill_started(self) -> None:
        """Ends the processes of a start that is not waited for any more."""
        ...
