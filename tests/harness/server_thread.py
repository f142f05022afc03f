"""A whole server, engine process included, on an event loop of its own thread, so that its insides can be looked at."""

import asyncio
import io
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvloop

from harness.state_folder import lend_state_folder
from tidegate.cli.model_loading import load_models
from tidegate.cli.running_server import RunningServer
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve
from tidegate.cli.sockets import Sockets
from tidegate.observability.logs import LogFormat, LogSettings, build_logger
from tidegate.serving.local_gate import LocalGate
from tidegate.system import SystemClock

T = TypeVar("T")
START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """Everything that must come back after any request, however it ended."""

    num_live: int
    num_permits: int
    num_sequences: int
    queued_tokens: int
    blocks_used: int
    num_running: int
    num_waiting: int
    num_held: int
    num_tasks: int
    num_descriptors: int


class ServerThread:
    """Used as a context manager. `settings` maps `section.key` to values; both ports are free ones. `file` is the text
    of a settings file.

    Its state lies in a folder of its own, unless `server__state_dir` says where. Nothing is calibrated, unless
    `engine__calibrate` says so: each folder would have to.
    """

    def __init__(self, engine: str, file: str | None = None, **settings: Any) -> None:
        flags = {"engine.kind": engine, "server.port": 0, "server.admin_port": 0, "engine.calibrate": False}
        flags |= {name.replace("__", "."): value for name, value in settings.items()}
        if "server.state_dir" not in flags:
            flags["server.state_dir"] = lend_state_folder(self)
        path = None if file is None else Path(flags["server.state_dir"]) / "tidegate.toml"
        if path is not None and file is not None:
            path.write_text(file, "utf-8")
        self.settings: Settings = resolve(path, {}, flags, is_file_required=False).settings
        self.log = io.StringIO()
        self._thread = threading.Thread(target=self._run, name="server under test")
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.server: RunningServer | None = None

    def __enter__(self) -> "ServerThread":
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the server did not start; its log:\n{self.log.getvalue()}")
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)
        assert not self._thread.is_alive(), "the server did not stop"

    @property
    def running(self) -> RunningServer:
        assert self.server is not None
        return self.server

    @property
    def port(self) -> int:
        return self.running.public.port

    @property
    def admin_port(self) -> int:
        return self.running.admin.port

    @property
    def url(self) -> str:
        return self.running.public.url

    @property
    def admin_url(self) -> str:
        return self.running.admin.url

    @property
    def model(self) -> str:
        return self.running.parts.service.services[0].served.name

    def call(self, function: Callable[[], Awaitable[T]], timeout_s: float = 30.0) -> T:
        """Runs a coroutine function on the server's loop and returns its result."""
        assert self._loop is not None

        async def run() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout_s)

    def look(self, function: Callable[[], T]) -> T:
        """Runs a function on the server's loop and returns its result."""

        async def run() -> T:
            return function()

        return self.call(run)

    def baseline(self) -> Baseline:
        """Returns the present accounts."""
        return self.look(self._baseline)

    def rest(self) -> Baseline:
        """Waits until the accounts do not move any more, and returns them."""
        seen: list[Baseline] = []

        def is_still() -> bool:
            seen.append(self.baseline())
            return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

        wait_until(is_still, "the accounts do not move")
        return seen[-1]

    def wait_back(self, before: Baseline, timeout_s: float = 20.0) -> None:
        """Waits until every account is where it was."""
        now = [before]

        def is_back() -> bool:
            now[0] = self.baseline()
            # A connection that was just closed may have been counted before.
            has_all = now[0].num_descriptors <= before.num_descriptors
            return has_all and replace(now[0], num_descriptors=before.num_descriptors) == before

        try:
            wait_until(is_back, "", timeout_s)
        except AssertionError:
            raise AssertionError(f"accounts did not come back:\n{before}\n{now[0]}") from None

    def take_log(self) -> str:
        """Returns what was logged since the last call."""

        def take() -> str:
            text = self.log.getvalue()
            self.log.seek(0)
            self.log.truncate()
            return text

        return self.look(take)

    def kill_engine(self) -> None:
        """SIGKILL to the engine process."""
        process_id = self.look(lambda: self.running.supervisor.process_id)
        assert process_id is not None
        os.kill(process_id, 9)

    def wait_ready(self) -> None:
        self.call(self.running.wait_ready)

    def _baseline(self) -> Baseline:
        parts, status = self.running.parts, self.running.supervisor.engine.statistics()
        gate = parts.gate
        assert isinstance(gate, LocalGate)
        admission = gate.statistics()
        gate.admission.check_integrity()
        return Baseline(
            num_live=len(parts.service.live),
            num_permits=admission.num_requests,
            num_sequences=admission.num_sequences,
            queued_tokens=admission.queued_tokens,
            blocks_used=status.gauges.blocks_used,
            num_running=status.gauges.num_running,
            num_waiting=status.gauges.num_waiting,
            num_held=status.gauges.num_held,
            num_tasks=len(asyncio.all_tasks()),
            num_descriptors=len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
        )

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        logger = build_logger(LogSettings("info", LogFormat.JSON), self.log, SystemClock().wall)
        server = None
        try:
            server = RunningServer(self.settings, load_models(self.settings), Sockets(self.settings), logger)
            self.server = server
            await server.start()
            await server.wait_ready()
        except BaseException as failure:
            self._failure = failure
            self._started.set()
        else:
            self._started.set()
            await self._end.wait()
        finally:
            if server is not None:
                await server.stop()


def wait_until(check: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    """Waits until `check` holds; fails with `what` when it does not in time."""
    deadline = threading.Event()
    for _ in range(int(timeout_s / 0.01)):
        if check():
            return
        deadline.wait(0.01)
    raise AssertionError(f"not reached in {timeout_s} s: {what}")


def to_json(body: bytes) -> Any:
    return msgspec.json.decode(body)
