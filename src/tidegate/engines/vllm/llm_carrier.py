"""LlmCarrier: a request's choices as requests to vLLM's `AsyncLLM`, one task each.

A run's task owns its generator: cutting it cancels the task, which makes vLLM abort, and nothing comes any more. A held
run takes no further output; vLLM joins what comes meanwhile into one object for each request.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.engines.remote.carrier import COMPLETE, Ending, Outcome, RunOwner
from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.remote.hop_headers import trace_context
from tidegate.engines.remote.remote_error import lost
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.remote.sampling_facts import token_ids_of, unserved_constraint
from tidegate.engines.vllm.engine_faults import outcome_of
from tidegate.engines.vllm.library import Library, Llm
from tidegate.engines.vllm.output_reading import VllmOutputReader
from tidegate.engines.vllm.sampling_fields import VllmLimits, check_fields, sampling_fields
from tidegate.errors import EngineUnavailable
from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.request import InferenceRequest

MAX_RUNS = 8192
"""Choices that are open in the engine at once."""


@dataclass(frozen=True, slots=True)
class LlmAbilities:
    """What a started engine can do. `has_tracing`: it takes the trace of a request, and hangs its spans there."""

    eos_token_ids: tuple[int, ...]
    limits: VllmLimits
    has_priorities: bool = True
    grammars: GrammarWriter | None = None
    has_tracing: bool = False


@dataclass(frozen=True, slots=True)
class LlmOrder:
    """One choice, as vLLM is asked for it."""

    remote_id: str
    token_ids: list[int]
    fields: dict[str, object]
    cache_salt: str | None
    priority: int
    trace: Mapping[str, str] = field(default_factory=dict)


class LlmRun:
    """See `Run`."""

    def __init__(
        self,
        owner: RunOwner,
        open_stream: Callable[[], Any],
        reader: VllmOutputReader,
        choice: int,
        tasks: set[asyncio.Task[None]],
    ) -> None:
        """`tasks` holds the run's until it has ended."""
        self.choice = choice
        self._task: asyncio.Task[None] | None = None
        self._tasks = tasks
        self._owner = owner
        self._open_stream = open_stream
        self._reader = reader
        self._released = asyncio.Event()
        self._released.set()
        self._is_over = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._pump(), name="output of vLLM")
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def hold(self, *, held: bool) -> None:
        if held:
            self._released.clear()
        else:
            self._released.set()

    def cut(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    async def _pump(self) -> None:
        try:
            outcome = await self._read_all()
        except UnreadableAnswer as error:
            outcome = Outcome(Ending.LOST, str(error), lost())
        except Exception as error:
            outcome = outcome_of(error)
        if not self._is_over:
            self._is_over = True
            self._owner.end_run(self, outcome)

    async def _read_all(self) -> Outcome:
        has_end = False
        await self._released.wait()
        async for output in self._open_stream():
            await self._released.wait()
            if self._is_over or has_end:
                continue
            piece = self._reader.read(output)
            has_end = piece.finish is not None
            self._owner.take_piece(self, piece)
        return COMPLETE if has_end else Outcome(Ending.LOST, "the output ended without an end", lost())


class LlmCarrier:
    """See `Carrier`. `begin` leads it to a started engine; `drop` lets go of that."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._llm: Llm | None = None
        self._abilities: LlmAbilities | None = None
        self._runs: set[asyncio.Task[None]] = set()
        self._aborts: set[asyncio.Task[None]] = set()

    @property
    def num_runs(self) -> int:
        return len(self._runs)

    def begin(self, llm: Llm, abilities: LlmAbilities) -> None:
        """Leads to this engine from now on."""
        self._llm, self._abilities = llm, abilities

    def check(self, request: InferenceRequest) -> None:
        if len(self._runs) + request.num_choices > MAX_RUNS:
            raise EngineUnavailable("The engine does not keep up.", retry_after_s=1)
        abilities = self._known()
        check_fields(request, abilities.limits)
        if request.grammar is not None:
            _grammar(abilities, request.grammar)

    def make_run(self, owner: RunOwner, request: InferenceRequest, choice: int, remote_id: str) -> LlmRun:
        abilities, llm = self._known(), self._llm
        assert llm is not None
        grammar = None if request.grammar is None else _grammar(abilities, request.grammar)
        order = LlmOrder(
            remote_id,
            token_ids_of(request),
            sampling_fields(request, choice, abilities.eos_token_ids, grammar),
            request.cache_salt.hex() if request.cache_salt else None,
            request.priority if abilities.has_priorities else 0,
            trace_context(request.hop) if abilities.has_tracing else {},
        )
        reader = VllmOutputReader(request, choice, abilities.eos_token_ids)
        return LlmRun(owner, lambda: open_stream(self._library, llm, order), reader, choice, self._runs)

    def abort(self, remote_id: str) -> None:
        """Beside the cancellation of its run, which alone may come while vLLM is still taking the request in."""
        llm = self._llm
        if llm is None:
            return
        task = asyncio.create_task(_abort(llm, remote_id), name="abort in vLLM")
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)

    def drop(self) -> None:
        self._llm = self._abilities = None
        for task in self._aborts:
            task.cancel()

    async def aclose(self) -> None:
        self.drop()
        for task in (*self._runs, *self._aborts):
            task.cancel()
        await asyncio.gather(*self._runs, *self._aborts, return_exceptions=True)

    async def reset_prefix_cache(self) -> bool:
        """Drops what the engine keeps for reuse; False where requests run, and nothing is. Raises EngineUnavailable."""
        if self._llm is None:
            raise EngineUnavailable("The engine is not ready.")
        return bool(await self._llm.reset_prefix_cache())

    def _known(self) -> LlmAbilities:
        if self._abilities is None:
            raise EngineUnavailable("The engine is not ready.")
        return self._abilities


def open_stream(library: Library, llm: Llm, order: LlmOrder) -> Any:
    """Returns the generator of one order's outputs. Raises what vLLM raises for fields that it does not take."""
    return llm.generate(
        library.prompt(order.token_ids, order.cache_salt),
        library.sampling(order.fields),
        order.remote_id,
        trace_headers=order.trace or None,
        priority=order.priority,
    )


async def _abort(llm: Llm, remote_id: str) -> None:
    """What an abort of a dead engine raises says nothing that the watch does not find out."""
    try:
        await llm.abort(remote_id)
    except Exception:
        return


def _grammar(abilities: LlmAbilities, rule: GrammarRule) -> str:
    if abilities.grammars is None:
        raise unserved_constraint("the engine does not enforce grammars")
    return abilities.grammars.text(rule)
