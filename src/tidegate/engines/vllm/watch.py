"""VllmWatch: starts vLLM in this process, off the event loop, declares it ready, and starts it anew when it has died.

The engine's own process is vLLM's child, and dies apart from this one: then every open request fails once, and a new
engine is built in the same process under the next epoch. An engine that makes no step and gives no output for too long
while something is waited for is ended, too. `RestartPolicy` decides when the next one starts, and when none.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.engine.exit_code import EngineExit
from tidegate.engines.life.condition import EngineCondition, EnginePhase, condition_after
from tidegate.engines.life.engine_life import EngineLife
from tidegate.engines.life.restart_policy import EngineEnd, GiveUp, RestartPolicy, RestartSettings
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.remote.ask import EngineUnfit
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.lookout import Lookout
from tidegate.engines.remote.served_facts import ServedFacts
from tidegate.engines.vllm.call_aside import call_aside
from tidegate.engines.vllm.engine_arguments import UnusableOptions, VllmPlan, engine_arguments
from tidegate.engines.vllm.engine_faults import describe
from tidegate.engines.vllm.introduction import Introduced, introduce
from tidegate.engines.vllm.library import Library, Llm
from tidegate.engines.vllm.llm_carrier import LlmCarrier
from tidegate.engines.vllm.step_statistics import StepStatistics
from tidegate.engines.vllm.weights_digest import digest_folder
from tidegate.system import mint_life

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
        self._last_words = ""
        self._was_asked = False
        self._lookout = Lookout(engine, settings.look_interval_s, settings.stall_timeout_s)
        self._life = EngineLife("watch over vLLM", engine, self._live)

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
        self._life.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it was given up."""
        await self._life.wait_ready()

    async def restart(self) -> None:
        """Has the present engine ended and the next one started at once; joins a start that is under way.

        Open requests fail. Returns when the old engine serves no more. Also takes up again an engine that was given up.
        """
        if self._life.take_up():
            self._policy = RestartPolicy(self._settings.restart)
        elif not self.is_starting:
            self._was_asked = True
            self._lookout.call()
            self._life.hurry()
            epoch = self.engine.statistics().epoch
            while self.engine.is_ready and self.engine.statistics().epoch == epoch:
                await self._life.wait_news()

    async def aclose(self) -> None:
        """Ends the watch and the engine. Open requests fail. Idempotent."""
        await self._life.aclose()
        await self.engine.aclose()

    async def _live(self) -> float | EngineStartFailed:
        """See `Live`: one vLLM, under the next epoch."""
        self._was_asked = False
        self._condition = replace(self._condition, phase=EnginePhase.STARTING, next_start_at=None)
        decision = self._policy.decide(await self._run_llm())
        now = asyncio.get_running_loop().time()
        self._condition = condition_after(decision, self._last_words, self._policy.num_in_row, now)
        if isinstance(decision, GiveUp):
            return EngineStartFailed(f"vLLM did not start: {self._last_words}.")
        return decision.wait_s

    async def _run_llm(self) -> EngineEnd:
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
            self.engine.lose(self._last_words, was_asked=self._was_asked)
            return EngineEnd(EngineExit.BACKEND_FAILED, loop.time() - ready_at, was_asked=self._was_asked)
        finally:
            self.engine.lose("this server ends", was_asked=True)
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
        except UnusableOptions as error:
            raise _Unfit(str(error)) from None
        except Exception as error:
            raise _Unfit(describe(error)) from error
        if self._life.is_ending:
            raise _Unfit("this server ends")
        return self._library.start(config, self._note_step)

    async def _abandon(self, starting: "asyncio.Future[Llm]") -> None:
        """Waits until a start that nobody wants has ended."""
        loop = asyncio.get_running_loop()
        self._life.end()
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
        if ending.done() and (fault := ending.exception()) is not None:
            self._take_note(f"the end of vLLM failed: {describe(fault)}")
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
        self.engine.begin(introduced.model, mint_life())
        for note in introduced.notes:
            self._take_note(note)

    async def _stay(self, llm: Llm) -> str:
        """Returns when the engine is to end, or has, with the reason."""
        while True:
            await self._lookout.wait()
            if self._was_asked:
                return "a restart was asked for"
            if llm.errored:
                return "vLLM's own process has ended"
            if self._lookout.finds_stall():
                return f"it made no step for {self._settings.stall_timeout_s:g} s"
            if not self._lookout.has_trouble:
                self.engine.note_well()

    def _note_step(self, scheduler: object, iteration: object) -> None:
        self.engine.note_sign()
        self._statistics.take(scheduler, iteration)

    def _failed(self, error: Exception) -> EngineEnd:
        self._last_words = describe(error) if not isinstance(error, _Unfit | EngineUnfit) else str(error)
        is_hopeless = isinstance(error, _Unfit | EngineUnfit)
        return EngineEnd(EngineExit.USAGE if is_hopeless else EngineExit.START_FAILED, None)
