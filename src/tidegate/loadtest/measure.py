"""All runs of a report, over one server or two in turns, within their bounds. A shell."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.clock import Clock
from tidegate.loadtest.arrivals import Arrival, schedule_arrivals
from tidegate.loadtest.ask import Asker
from tidegate.loadtest.comparison import order_of
from tidegate.loadtest.dice import Dice
from tidegate.loadtest.http_client import HttpClient
from tidegate.loadtest.orders import Budget, Load, Orders
from tidegate.loadtest.preflight import find_model, probe
from tidegate.loadtest.run_summary import Taken
from tidegate.loadtest.runner import LoadRunner
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.session import Session
from tidegate.loadtest.target import Target

BeginRun = Callable[[Target, int | None, int], None]
"""Told before each run: the server, the run's number (None: warm-up), how many requests it has."""


@dataclass(slots=True)
class Measured:
    """What is there so far; `taken` holds the runs of each server. `stopped`: why it ended early, if it did."""

    targets: list[Target]
    taken: list[list[Taken]]
    orders: Orders
    begun_at: float
    stopped: str = ""
    warm_faults: dict[str, str] = field(default_factory=dict)


class Measuring:
    """Measures once. `stop` may be called at any time: what runs is dropped, and `measure` returns what it has."""

    def __init__(self, targets: Sequence[Target], orders: Orders, clock: Clock) -> None:
        self._clock = clock
        self._clients = [HttpClient(target.origin, clock) for target in targets]
        self.measured = Measured(list(targets), [[] for _ in targets], orders, clock.now())
        self._budget = Budget(orders.bounds.max_tokens)
        self._stopping = asyncio.Event()

    def stop(self, why: str) -> None:
        """Ends the run that is going on, and starts no other."""
        self.measured.stopped = self.measured.stopped or why
        self._stopping.set()

    async def prepare(self) -> None:
        """Finds the models, and how many tokens a word of the first server is. Raises CannotMeasureError."""
        measured = self.measured
        for number, client in enumerate(self._clients):
            target = measured.targets[number] = await find_model(measured.targets[number], client)
            rate = await probe(target, client, self._clock)
            if number == 0:
                measured.orders = replace(measured.orders, workload=replace(measured.orders.workload, words=rate))

    async def measure(self, begin_run: BeginRun, tell: Callable[[Sample], None]) -> None:
        """Runs everything into `measured`."""
        bounds = self.measured.orders.bounds
        deadline = asyncio.get_running_loop().call_later(bounds.max_time_s, self.stop, "--max-time was over")
        try:
            for number in range(len(self._clients)):
                warm = self.measured.orders.warm_sessions()
                if warm and not self._stopping.is_set():
                    begin_run(self.measured.targets[number], None, sum(len(session.turns) for session in warm))
                    for sample in (await self._run(number, warm, None, tell)).samples:
                        if sample.is_error:
                            self.measured.warm_faults.setdefault(sample.ending, sample.detail)
            for run_number in range(bounds.num_runs):
                await self._run_all(run_number, begin_run, tell)
        finally:
            deadline.cancel()

    async def close(self) -> None:
        """Drops all connections. Must be called, whatever came of the rest."""
        for client in self._clients:
            await client.close()

    async def _run_all(self, run_number: int, begin_run: BeginRun, tell: Callable[[Sample], None]) -> None:
        sessions = self.measured.orders.sessions_of(run_number)
        order = order_of(run_number) if len(self._clients) > 1 else (0,)
        for number in order:
            if self._budget.is_spent:
                self.stop("--max-tokens were used")
            if self._stopping.is_set():
                return
            begin_run(self.measured.targets[number], run_number, sum(len(session.turns) for session in sessions))
            taken = await self._run(number, sessions, run_number, tell)
            if taken.samples:
                self.measured.taken[number].append(taken)

    async def _run(
        self, number: int, sessions: list[Session], run_number: int | None, tell: Callable[[Sample], None]
    ) -> Taken:
        orders = self.measured.orders
        asker = Asker(self.measured.targets[number], self._clients[number], self._clock, orders.bounds.timeout_s)
        runner = LoadRunner(asker, self._clock, self._budget, tell)
        begun_at, cpu = self._clock.now(), time.process_time()
        is_open = orders.load.is_open and run_number is not None
        until = begun_at + (orders.bounds.duration_s or orders.bounds.max_time_s)
        await self._until_stopped(self._load(runner, sessions, run_number if is_open else None, until))
        samples = runner.samples
        return Taken(
            number=run_number or 0,
            begun_at=begun_at,
            ended_at=max((sample.ended_at for sample in samples), default=self._clock.now()),
            samples=samples,
            client_cpu_s=time.process_time() - cpu,
            is_open_loop=is_open,
            is_whole=not self._stopping.is_set(),
        )

    async def _load(self, runner: LoadRunner, sessions: list[Session], run_number: int | None, until: float) -> None:
        load: Load = self.measured.orders.load
        if run_number is None or load.rate is None:
            await runner.run_closed(sessions, load, until)
            return
        dice = Dice(self.measured.orders.workload.seed, "arrivals", run_number)
        await runner.run_open(sessions, load, schedule_arrivals(Arrival(load.arrival), load.rate, dice), until)

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not running.done():
            running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
