"""WorkerPool: the server processes that share one listening socket and the engines, kept alive from the first process.

A worker that ends by itself is started again after a wait that doubles with each end in a row. The pool answers for
its workers: their live requests joined, their counts added up.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from pathlib import Path

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.settings import Settings
from tidegate.cli.worker_control import ask
from tidegate.cli.worker_spec import EngineTie, WorkerSpec
from tidegate.engines.life.restart_policy import EngineEnd, GiveUp, RestartPolicy, RestartSettings
from tidegate.lasting_task import start_lasting

_STOP_GRACE_S = 10.0
_READY_POLL_S = 0.05


class WorkerPool:
    """`folder` is private and holds the control sockets. `listener_fd` is the bound public socket.

    `engines` are those of the moment: a worker that starts anew is told of them.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        engines: Callable[[], tuple[EngineTie, ...]],
        listener_fd: int,
        logger: FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._engines = engines
        self._listener_fd = listener_fd
        self._logger = logger
        self._processes: dict[int, Process] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closing = False

    def start(self) -> None:
        """Starts all workers and returns at once."""
        self._tasks = [
            start_lasting(self._keep_alive(index), f"worker {index}") for index in range(self._settings.server.workers)
        ]

    async def wait_ready(self) -> None:
        """Waits until every worker takes requests: the kernel spreads connections over all of them."""
        while True:
            if await self.count_ready() >= self._settings.server.workers:
                return
            await asyncio.sleep(_READY_POLL_S)

    async def count_ready(self) -> int:
        """Returns how many workers take requests now."""
        return (await self.ask_all("ready")).count(b"yes")

    @property
    def num_running(self) -> int:
        """Worker processes there are now, whether they answer or not."""
        return len(self._processes)

    async def ask_all(self, word: str, argument: str = "") -> list[bytes]:
        """Returns the answers of the workers that answer, empty ones left out."""
        paths = [self._control_socket(index) for index in self._processes]
        answers = await asyncio.gather(*(ask(path, word, argument) for path in paths))
        return [answer for answer in answers if answer]

    async def begin_drain(self, timeout_s: float | None) -> None:
        """Tells the workers to drain; none is started again. A later call can only move the end, as `DrainOrder`."""
        self._is_closing = True
        await self.ask_all("drain", json.dumps(timeout_s))

    async def drain(self, order: DrainOrder) -> None:
        """Tells the workers to drain and waits until they have ended, with some grace beyond the order's own time."""
        self._is_closing = True
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await order.wait_requests(self._wait_ended)
        await order.wait_delay()
        await asyncio.wait(self._tasks, timeout=_STOP_GRACE_S)

    async def _wait_ended(self) -> None:
        await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """Ends what is left. Idempotent."""
        self._is_closing = True
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _control_socket(self, index: int) -> Path:
        return self._folder / f"worker-{index}.sock"

    @property
    def gate_socket(self) -> Path:
        """Where workers ask for permits."""
        return self._folder / "gate.sock"

    def _spec(self, index: int) -> WorkerSpec:
        control, gate = str(self._control_socket(index)), str(self.gate_socket)
        return WorkerSpec(self._settings, self._listener_fd, self._engines(), control, gate)

    async def _keep_alive(self, index: int) -> None:
        policy = RestartPolicy(RestartSettings(max_failed_starts=None))
        loop = asyncio.get_running_loop()
        while not self._is_stopping():
            started_at = loop.time()
            code = await self._live_once(index)
            if self._is_stopping():
                return
            decision = policy.decide(EngineEnd(code, loop.time() - started_at))
            wait_s = 0.0 if isinstance(decision, GiveUp) else decision.wait_s
            self._logger.error("worker ended", worker_index=index, exit_code=code, restart_in_s=wait_s)
            await asyncio.sleep(wait_s)

    def _is_stopping(self) -> bool:
        return self._is_closing

    async def _live_once(self, index: int) -> int:
        self._control_socket(index).unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tidegate.cli.worker", msgspec.json.encode(self._spec(index)).decode()),
            stdin=PIPE,
            stdout=DEVNULL,
            pass_fds=(self._listener_fd,),
            start_new_session=True,
            env=dict(os.environ),
        )
        self._processes[index] = process
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            self._processes.pop(index, None)
