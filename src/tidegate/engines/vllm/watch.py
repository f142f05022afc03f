"""VllmWatch: starts vLLM in this process, off the event loop, declares it ready, and starts it anew when it has died.

The engine's own process is vLLM's child, and dies apart from this one: then every open request fails once, and a new
engine is built in the same process under the next epoch. An engine that makes no step and gives no output for too long
while something is waited for is ended, too. `restart_policy.py` of the local engine decides when, and when not.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.engine.exit_code import EngineExit
from tidegate.engines.local.condition import EngineCondition, EnginePhase
from tidegate.engines.local.restart_policy import EngineEnd, GiveUp, Restart, RestartPolicy, RestartSettings
from tidegate.engines.remote.ask import EngineUnfit
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.served_facts import ServedFacts
from tidegate.engines.remote.start_failed import RemoteStartFailed
from tidegate.engines.vllm.call_aside import call_aside
from tidegate.engines.vllm.engine_arguments import VllmPlan, engine_arguments
from tidegate.engines.vllm.engine_faults import describe
from tidegate.engines.vllm.introduction import Introduced, introduce
from tidegate.engines.vllm.library import Library, Llm
from tidegate.engines.vllm.llm_carrier import LlmCarrier
from tidegate.engines.vllm.step_statistics import StepStatistics
from tidegate.engines.vllm.weights_digest import digest_folder

END_GRACE_S = 10.0
"""How long vLLM's processes have to end by themselves: its executor waits five seconds for its workers."""
ABANDON_S = 30.0
"""How long the end of this server waits for a start that is under way."""
_LOOK_S = 0.1


class _Unfit(Exception):
    """The engine will never serve these settings."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """`look_interval_s`: how soon the end of an idle engine is noticed. `stall_timeout_s`: see the module."""

    look_interval_s: float = 1.0
    stall_timeout_s: float = 60.0
    restart: RestartSettings = field(default_factory=RestartSettings)


class VllmWatch:
    """Used on one event loop: `start`, then `engine` as the Engine port, then `aclose`.

    `engine` runs over `carrier`. `take_note` gets what an operator should know of an engine that has just become ready.
    """

    def __init__(
        self,
        engine: RemoteEngine,
        carrier: LlmCarrier,
        library: Library,
        plan: VllmPlan,
        served: ServedFacts,
        settings: VllmSettings,
        take_note: Callable[[str], None],
    ) -> None:
        self.engine = engine
        self.carrier = carrier
        self._library = library
        self._plan = plan
        self._served = served
        self._settings = settings
        self._take_note = take_note
        self._policy = RestartPolicy(settings.restart)
        self._statistics = StepStatistics()
        self._condition = EngineCondition()
        self._failure: RemoteStartFailed | None = None
        self._last_words = ""
        self._task: asyncio.Task[None] | None = None
        self._num_starts = 0
        self._is_closing = False
        self._news = asyncio.Event()
        self._trouble = asyncio.Event()
        self._asked = asyncio.Event()

    @property
    def is_starting(self) -> bool:
        """Whether the next engine is on its way already."""
        return self._condition.phase is EnginePhase.STARTING

    @property
    def coming_epoch(self) -> int:
        """The epoch of the engine that is starting, or else of the one after the present one."""
        return self.engine.statistics().epoch + 1

    def start(self) -> None:
        """Begins to start vLLM, and returns at once."""
        self.engine.describe = lambda: self._condition.describe(asyncio.get_running_loop().time())
        self.engine.measure = self._statistics.measure
        self.engine.on_trouble.append(self._trouble.set)
        self._task = asyncio.create_task(self._run(), name="watch over vLLM")

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises RemoteStartFailed when it was given up."""
        while not self.engine.is_ready:
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            await self._news.wait()

    async def wait_next(self) -> None:
        """Waits until an engine has become ready, or was given up: then raises RemoteStartFailed."""
        if self._failure is not None:
            raise self._failure
        self._news.clear()
        await self._news.wait()

    def restart(self) -> None:
        """Has the present engine ended and the next one started at once. Open requests fail."""
        if self._failure is not None and not self._is_closing:
            self._failure = None
            self._policy = RestartPolicy(self._settings.restart)
            self._task = asyncio.create_task(self._run(), name="watch over vLLM")
        elif not self.is_starting:
            self._asked.set()
            self._trouble.set()

    async def aclose(self) -> None:
        """Ends the watch and the engine. Open requests fail. Idempotent."""
        self._is_closing = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self.engine.aclose()

    async def _run(self) -> None:
        while True:
            self._asked.clear()
            self._condition = replace(self._condition, phase=EnginePhase.STARTING, next_start_at=None)
            end = await self._live_once()
            decision = self._policy.decide(end)
            if isinstance(decision, GiveUp):
                self._give_up()
                return
            await self._wait(decision)

    async def _wait(self, decision: Restart) -> None:
        instant = asyncio.get_running_loop().time() + decision.wait_s
        self._condition = EngineCondition(EnginePhase.WAITING, self._last_words, self._policy.num_in_row, instant)
        self.engine.retry_after_s = decision.wait_s + 1.0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(decision.wait_s):
                await self._asked.wait()

    async def _live_once(self) -> EngineEnd:
        """Runs one engine from start to end."""
        loop = asyncio.get_running_loop()
        try:
            llm = await self._start_llm()
        except Exception as error:
            return self._failed(error)
        try:
            try:
                introduced = await self._introduce(llm)
            except Exception as error:
                return self._failed(error)
            ready_at = loop.time()
            self._begin(llm, introduced)
            self._last_words = await self._stay(llm)
            self.engine.lose(self._last_words)
            return EngineEnd(EngineExit.BACKEND_FAILED, loop.time() - ready_at, was_asked=self._asked.is_set())
        finally:
            self.engine.lose("this server ends")
            self.engine.process_id = None
            await self._end_llm(llm)

    async def _start_llm(self) -> Llm:
        """Returns a started vLLM. A start cannot be stopped: at our own end its processes are killed until it fails."""
        starting = call_aside(self._build, "start of vLLM")
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await self._abandon(starting)
            raise

    def _build(self) -> Llm:
        try:
            config = self._library.configure(engine_arguments(self._plan))
        except Exception as error:
            raise _Unfit(describe(error)) from error
        if self._is_closing:
            raise _Unfit("this server ends")
        return self._library.start(config, self._note_step)

    async def _abandon(self, starting: "asyncio.Future[Llm]") -> None:
        """Waits until a start that nobody wants has ended."""
        loop = asyncio.get_running_loop()
        self._is_closing = True
        until = loop.time() + ABANDON_S
        while not starting.done() and loop.time() < until:
            self._library.kill_started()
            await asyncio.wait([starting], timeout=_LOOK_S)
        if starting.done() and starting.exception() is None:
            await self._end_llm(starting.result())

    async def _end_llm(self, llm: Llm) -> None:
        """Ends vLLM's processes, off the loop: it waits for them."""
        ending = call_aside(lambda: llm.shutdown(timeout=END_GRACE_S), "end of vLLM")
        await asyncio.wait([ending], timeout=2 * END_GRACE_S)
        self._library.kill_started()

    async def _introduce(self, llm: Llm) -> Introduced:
        weights = await call_aside(self._digest, "digest of the weights")
        async with asyncio.timeout(self._settings.stall_timeout_s + END_GRACE_S):
            return await introduce(
                self._library, llm, self._served, weights=weights, has_priorities=self._plan.has_priorities
            )

    def _digest(self) -> str:
        """Names stand for weights that vLLM has fetched itself."""
        folder = Path(self._plan.model)
        return digest_folder(folder) if folder.is_dir() else self._plan.model

    def _begin(self, llm: Llm, introduced: Introduced) -> None:
        self._condition = EngineCondition(EnginePhase.READY)
        self._statistics.begin(introduced.model.num_blocks)
        self.carrier.begin(llm, introduced.abilities)
        self.engine.process_id = introduced.facts.process_id
        self.engine.begin(introduced.model)
        self._news.set()
        for note in introduced.notes:
            self._take_note(note)

    async def _stay(self, llm: Llm) -> str:
        """Returns when the engine is to end, or has, with the reason."""
        while True:
            self._trouble.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.look_interval_s):
                    await self._trouble.wait()
            if self._asked.is_set():
                return "a restart was asked for"
            if llm.errored:
                return "vLLM's own process has ended"
            since = self.engine.silent_since
            if since is not None and asyncio.get_running_loop().time() - since > self._settings.stall_timeout_s:
                self.engine.num_stalls += 1
                return f"it made no step for {self._settings.stall_timeout_s:g} s"
            if not self._trouble.is_set():
                self.engine.note_well()

    def _note_step(self, scheduler: object, iteration: object) -> None:
        self.engine.note_sign()
        self._statistics.take(scheduler, iteration)

    def _failed(self, error: Exception) -> EngineEnd:
        self._last_words = describe(error) if not isinstance(error, _Unfit | EngineUnfit) else str(error)
        is_hopeless = isinstance(error, _Unfit | EngineUnfit)
        return EngineEnd(EngineExit.USAGE if is_hopeless else EngineExit.START_FAILED, None)

    def _give_up(self) -> None:
        self._condition = EngineCondition(EnginePhase.FAILED, self._last_words)
        self._failure = RemoteStartFailed(f"vLLM did not start: {self._last_words}.")
        self._news.set()
