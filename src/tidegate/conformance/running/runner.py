"""Runs cases against a server: probes it, then case after case, by their turns. Nothing that a server does stops a run.

A run is bounded as a whole: in time, in requests, in bytes read. At a bound, or when it is told to stop, it ends with
what was done until then.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Turn
from tidegate.conformance.judge import Evidence
from tidegate.conformance.probing.probe import probe
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.probing.site import Site
from tidegate.conformance.running.case_runner import CaseRunner
from tidegate.conformance.running.marker import make_marker
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.running.server_watch import ANSWER_S, PATIENCE_S, ServerWatch
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.fill import Filling, WireRequest, fill
from tidegate.conformance.wire.http_client import MAX_RESPONSE_BYTES, Bounds, exchange
from tidegate.conformance.wire.target import Target

Told = Callable[[Result], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBounds:
    """Of a whole run. `patience_s`: how long a server that has gone is waited for; `answer_s`: how long it then has for
    an answer.
    """

    max_s: float = 3600.0
    max_requests: int = 50_000
    max_bytes: int = 4 * 1024 * 1024 * 1024
    max_response_bytes: int = MAX_RESPONSE_BYTES
    patience_s: float = PATIENCE_S
    answer_s: float = ANSWER_S


def _tell_nobody(result: Result) -> None:
    del result


class Runner:
    """One run against one server. `jobs`: cases at once. `tell` gets each result as soon as it is there, in the order
    of their ends.
    """

    def __init__(
        self, target: Target, *, jobs: int = 4, bounds: RunBounds | None = None, tell: Told = _tell_nobody
    ) -> None:
        self._target = target
        self._jobs = jobs
        self._bounds = bounds or RunBounds()
        self._tell = tell
        self._is_scripted = False
        self._num_requests = 0
        self._num_bytes = 0
        self._stopped = ""
        self._work: asyncio.Task[None] | None = None

    async def probe(self) -> Probed:
        """Returns what the server can do. Raises NoServerError."""
        site = Site(
            has_key=self._target.api_key is not None,
            has_admin_url=self._target.admin_url is not None,
            may_drain=self._target.may_drain,
        )
        return await probe(self._ask_once, self._target.model, site, jobs=self._jobs, named=self._take_model)

    async def run(self, cases: Sequence[Case], probed: Probed | None = None) -> RunReport:
        """Runs all. `probed`: what is known of the server already; else it is asked. Raises NoServerError where nothing
        answers.
        """
        start = time.monotonic()
        started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        probed = probed or await self.probe()
        self._take_model(probed.model, probed.is_scripted)
        results: dict[str, Result] = {}
        self._work = asyncio.create_task(self._run_all(cases, probed, results))
        timer = asyncio.get_running_loop().call_later(
            self._bounds.max_s, self.stop, f"the run has taken {self._bounds.max_s:g} s, and that is its bound"
        )
        try:
            await asyncio.wait({self._work})
            if not self._work.cancelled():
                self._work.result()
        finally:
            timer.cancel()
            self._work.cancel()
            await asyncio.wait({self._work})
        return RunReport(
            self._target,
            probed,
            tuple(results[case.id] for case in cases if case.id in results),
            time.monotonic() - start,
            started_at,
            self._stopped,
            tuple(case.id for case in cases if case.id not in results),
        )

    def stop(self, why: str) -> None:
        """Ends the run; cases that are not done are left out of its report."""
        self._stopped = self._stopped or why
        if self._work is not None:
            self._work.cancel()

    async def _run_all(self, cases: Sequence[Case], probed: Probed, results: dict[str, Result]) -> None:
        watch = ServerWatch(self._look, self._bounds.patience_s, self._bounds.answer_s)
        runner = CaseRunner(self._target, probed, self._send, watch)
        slots = asyncio.Semaphore(self._jobs)

        async def run(case: Case) -> None:
            async with slots:
                results[case.id] = result = await runner.run(case)
            self._tell(result)

        async with asyncio.TaskGroup() as group:
            for case in cases:
                if case.turn is Turn.SHARED:
                    group.create_task(run(case))
        for turn in (Turn.ALONE, Turn.LAST):
            if turn is Turn.LAST and watch.gone:
                self._stopped = watch.gone
            for case in cases:
                if case.turn is turn:
                    await run(case)

    def _take_model(self, name: str, is_scripted: bool) -> None:
        self._target = replace(self._target, model=name)
        self._is_scripted = is_scripted

    async def _ask_once(self, ask: Ask, evidence: Evidence) -> Exchange:
        filling = Filling(self._target, make_marker(self._target.seed, "probe", repr(ask)), 0, evidence)
        return await self._send(ask, fill(ask, filling, is_scripted=self._is_scripted), time.monotonic())

    async def _look(self, ask: Ask) -> Exchange:
        return await self._ask_once(ask, {})

    async def _send(
        self, ask: Ask, request: WireRequest, origin: float, others: asyncio.Event | None = None
    ) -> Exchange:
        self._num_requests += 1
        if self._num_requests > self._bounds.max_requests:
            self.stop(f"the run has sent {self._bounds.max_requests} requests, and that is its bound")
            await asyncio.sleep(0)
        bounds = Bounds(self._target.timeout_s, self._bounds.max_response_bytes)
        found = await exchange(ask, request, bounds, origin, others)
        self._num_bytes += sum(len(piece.data) for piece in found.pieces)
        if self._num_bytes > self._bounds.max_bytes:
            self.stop(f"the run has read {self._bounds.max_bytes} bytes, and that is its bound")
            await asyncio.sleep(0)
        return found
