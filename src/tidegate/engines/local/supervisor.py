"""Supervisor: keeps one engine process alive, and a LocalEngine connected to it.

Starts the engine as a program under the next epoch, watches its end and its silence, and starts it again as
`restart_policy.py` says. `hang_watch.py` decides when silence is a hang, `condition.py` how all that is told.
"""

import asyncio
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.engine.messages import EngineReady
from tidegate.engine.options import EngineOptions
from tidegate.engines.life.condition import EngineCondition, EnginePhase, condition_after, describe_end
from tidegate.engines.life.engine_life import EngineLife
from tidegate.engines.life.restart_policy import EngineEnd, GiveUp, RestartPolicy, RestartSettings
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.life.wait_event import wait_event
from tidegate.engines.local.channel import EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.cpu_time import cpu_seconds
from tidegate.engines.local.hang_watch import HangWatch, Signs
from tidegate.engines.local.link import EngineLink
from tidegate.engines.local.process import EngineProcess, engine_command
from tidegate.lifecycle.poison import PoisonWatch

_LAST_WORDS_S = 0.5
"""How long an engine that broke the protocol, or said that it failed, has to end by itself."""
_NO_PROCESS = 127
"""What stands for an exit code where not even a process could be made, as shells have it."""


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """`stall_timeout_s`: how long an engine may make no step, as `hang_watch.py` understands it."""

    restart: RestartSettings = field(default_factory=RestartSettings)
    start_timeout_s: float = 600.0
    ping_interval_s: float = 5.0
    stall_timeout_s: float = 60.0
    stop_grace_s: float = 10.0

    @property
    def tick_s(self) -> float:
        """Seconds between two looks at the engine: several within the patience, however short that is."""
        return min(self.ping_interval_s, self.stall_timeout_s / 4)


class Supervisor:
    """Used on one event loop: `start`, then `engine` as the Engine port, then `aclose`.

    `runtime_dir` holds the socket; None makes a private folder and removes it at the end. `write_log` gets the
    engine's log lines. Engines of one pool share one `poison`. `engine.on_ready` and `engine.on_lost` tell of changes.
    """

    def __init__(
        self,
        options: EngineOptions,
        settings: SupervisorSettings | None = None,
        runtime_dir: Path | None = None,
        write_log: Callable[[bytes], None] | None = None,
        poison: PoisonWatch | None = None,
    ) -> None:
        self.engine = LocalEngine(
            lambda context: asyncio.get_running_loop().call_exception_handler(context), poison=poison
        )
        self._options = options
        self._settings = settings or SupervisorSettings()
        self._policy = RestartPolicy(self._settings.restart)
        self._given_dir = runtime_dir
        self._socket_path: Path | None = None
        self._write_log = write_log or _write_stderr
        self._link: EngineLink | None = None
        self._life = EngineLife("engine supervisor", self.engine, self._live)
        self._process: EngineProcess | None = None
        self._epoch = 0
        self._ready_at: float | None = None
        self._condition = EngineCondition()
        self._verdict: str | None = None
        self._was_asked = False
        self._last_lines: list[str] = []
        self._condemned = asyncio.Event()

    @property
    def socket_path(self) -> Path | None:
        """Where further server processes reach the engine; None before `start`."""
        return self._socket_path

    @property
    def process_id(self) -> int | None:
        """The engine's process; None between two."""
        return None if self._process is None else self._process.process_id

    @property
    def is_starting(self) -> bool:
        """Whether the next engine is on its way already, so that a restart would only delay it."""
        return self._condition.phase is EnginePhase.STARTING or (self._was_asked and self._process is not None)

    @property
    def coming_epoch(self) -> int:
        """The epoch of the engine that is starting, or else of the one after the present one."""
        return self._epoch if self._condition.phase is EnginePhase.STARTING else self._epoch + 1

    async def start(self) -> None:
        """Starts the engine and returns at once. Raises OSError or ValueError when the folder cannot be used."""
        self._socket_path = _make_folder(self._given_dir) / "engine.sock"
        self.engine.on_ready.append(self._note_ready)
        self.engine.on_lost.append(self._note_lost)
        self.engine.describe = lambda: self._condition.describe(asyncio.get_running_loop().time())
        self._link = EngineLink(self.engine, self._socket_path, self._note_end)
        self._link.start()
        self._life.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it was given up."""
        await self._life.wait_ready()

    async def restart(self) -> None:
        """Ends the present engine, if any, and starts the next one at once. Open requests fail.

        Returns when the old process has ended. Also takes up again an engine that was given up.
        """
        self._life.hurry()
        if self._life.take_up():
            self._policy = RestartPolicy(self._settings.restart)
        elif self._process is not None:
            self._was_asked = True
            await self._process.stop(self._settings.stop_grace_s)

    async def aclose(self) -> None:
        """Ends the engine, first politely, and everything of ours. Open requests fail. Idempotent."""
        self._life.end()
        if self._process is not None:
            await self._process.stop(self._settings.stop_grace_s)
        await self._life.wait_end()
        if self._link is not None:
            await self._link.aclose()
        if self._socket_path is not None:
            _remove_folder(self._socket_path, whole=self._given_dir is None)

    async def _live(self) -> float | EngineStartFailed:
        """See `Live`: one process, under the next epoch."""
        self._epoch += 1
        self.engine.num_restarts = self._epoch - 1
        self._condition = replace(self._condition, phase=EnginePhase.STARTING, next_start_at=None)
        end = await self._run_process()
        decision = self._policy.decide(end)
        last_end = self._describe(end)
        now = asyncio.get_running_loop().time()
        self._condition = condition_after(decision, last_end, self._policy.num_in_row, now)
        if isinstance(decision, GiveUp):
            words = f"the engine did not start, {decision.num_failed_starts} times in a row"
            return EngineStartFailed(
                f"{words}; last exit code {end.exit_code}", exit_code=end.exit_code, last_lines=self._last_lines
            )
        return decision.wait_s

    async def _run_process(self) -> EngineEnd:
        """Runs one process from start to end."""
        assert self._socket_path is not None
        self._ready_at = None
        self._verdict = None
        self._was_asked = False
        self._condemned.clear()
        try:
            process = await EngineProcess.start(
                engine_command(self._options, self._socket_path, self._epoch), self._write_log
            )
        except OSError as error:
            self._last_lines = [str(error)]
            return EngineEnd(_NO_PROCESS, None, was_asked=self._life.is_ending)
        if self._life.is_ending:
            process.kill()
        self._process = process
        self.engine.process_id = process.process_id
        guard = asyncio.create_task(self._guard(process), name="engine guard")
        try:
            exit_code = await process.wait()
        finally:
            guard.cancel()
            await asyncio.gather(guard, return_exceptions=True)
            await process.aclose()
            self._process = None
            self.engine.process_id = None
            self._last_lines = process.last_lines
        ready_s = None if self._ready_at is None else asyncio.get_running_loop().time() - self._ready_at
        return EngineEnd(exit_code, ready_s, was_asked=self._was_asked or self._life.is_ending)

    async def _guard(self, process: EngineProcess) -> None:
        """Kills an engine that does not start, hangs, or cannot be believed any more."""
        settings = self._settings
        loop = asyncio.get_running_loop()
        start_until = loop.time() + settings.start_timeout_s
        watch = HangWatch(max(1, math.ceil(settings.stall_timeout_s / settings.tick_s)))
        nonce = 0
        while self._verdict is None:
            if await wait_event(self._condemned, settings.tick_s):
                await asyncio.sleep(_LAST_WORDS_S)
                self._verdict = "it broke the protocol, or failed and did not end"
                break
            if self._ready_at is None:
                if loop.time() > start_until:
                    self._verdict = f"it was not ready within {settings.start_timeout_s:g} s"
            elif (hang := watch.tick(self._signs(process))) is not None:
                self._verdict = f"{hang.value} for {settings.stall_timeout_s:g} s"
                self.engine.num_stalls += 1
            nonce += 1
            self.engine.ping(nonce)
        process.kill()

    def _signs(self, process: EngineProcess) -> Signs:
        gauges = self.engine.gauges
        return Signs(
            num_heard=self.engine.num_heard,
            num_steps=gauges.num_steps + gauges.num_pooled_batches,
            has_work=gauges.num_running + gauges.num_waiting > 0,
            cpu_s=cpu_seconds(process.process_id),
        )

    def _describe(self, end: EngineEnd) -> str:
        name = signal.Signals(-end.exit_code).name if -end.exit_code in set(signal.Signals) else None
        return describe_end(end.exit_code, name, self._verdict, was_asked=end.was_asked)

    def _note_ready(self, _greeting: EngineReady) -> None:
        self._ready_at = asyncio.get_running_loop().time()
        self._condition = replace(self._condition, phase=EnginePhase.READY)

    def _note_lost(self, reason: str) -> None:
        if self._condition.phase is EnginePhase.READY:
            self._condition = replace(self._condition, phase=EnginePhase.ENDING, last_end=reason)

    def _note_end(self, channel: EngineChannel) -> None:
        if channel.is_broken:
            self._condemned.set()


def _make_folder(given: Path | None) -> Path:
    if given is None:
        parent = os.environ.get("XDG_RUNTIME_DIR")
        return Path(tempfile.mkdtemp(prefix="tidegate-", dir=parent if parent and os.path.isdir(parent) else None))
    given.mkdir(mode=0o700, parents=True, exist_ok=True)
    return given


def _remove_folder(socket_path: Path, *, whole: bool) -> None:
    """Removes what a killed engine may have left behind."""
    if whole:
        shutil.rmtree(socket_path.parent, ignore_errors=True)
    else:
        socket_path.unlink(missing_ok=True)


def _write_stderr(line: bytes) -> None:
    sys.stderr.buffer.write(line)
    sys.stderr.buffer.flush()
