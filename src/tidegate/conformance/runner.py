"""Runs cases against a server: fills, sends, judges, repeats. Nothing that a server does stops the run."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tidegate.conformance.ask import Ask, Until
from tidegate.conformance.case import Case, Turn
from tidegate.conformance.exchange import Exchange
from tidegate.conformance.fill import Filling, fill
from tidegate.conformance.http_client import exchange
from tidegate.conformance.judge import Evidence, judge, unite
from tidegate.conformance.probe import probe
from tidegate.conformance.probed import Probed
from tidegate.conformance.run_report import Result, RunReport
from tidegate.conformance.site import Site
from tidegate.conformance.target import Target, TargetError
from tidegate.conformance.verdict import CannotTell, Outcome, Verdict

Told = Callable[[Result], None]


def _tell_nobody(result: Result) -> None:
    del result


class Runner:
    """One run against one server."""

    def __init__(self, target: Target, *, jobs: int = 4, tell: Told = _tell_nobody) -> None:
        self._target = target
        self._jobs = jobs
        self._tell = tell
        self._random = random.Random(target.seed)
        self._is_scripted = False

    async def run(self, cases: Sequence[Case], probed: Probed | None = None) -> RunReport:
        """Runs all. `probed`: what is known of the server already; else it is asked. Raises NoServerError where nothing
        answers.
        """
        start = time.monotonic()
        started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if probed is None:
            probed = await self._probe()
        self._take_model(probed.model, probed.is_scripted)
        results: list[Result] = []
        shared = [case for case in cases if case.turn is Turn.SHARED]
        slots = asyncio.Semaphore(self._jobs)

        async def run_shared(case: Case) -> None:
            async with slots:
                results.append(await self._run_case(case, probed))
                self._tell(results[-1])

        await asyncio.gather(*(run_shared(case) for case in shared))
        for turn in (Turn.ALONE, Turn.LAST):
            for case in (case for case in cases if case.turn is turn):
                results.append(await self._run_case(case, probed))
                self._tell(results[-1])
        order = {case.id: position for position, case in enumerate(cases)}
        results.sort(key=lambda result: order[result.case.id])
        return RunReport(self._target, probed, tuple(results), time.monotonic() - start, started_at)

    async def _probe(self) -> Probed:
        site = Site(
            has_key=self._target.api_key is not None,
            has_admin_url=self._target.admin_url is not None,
            may_drain=self._target.may_drain,
        )
        return await probe(self._ask_once, self._target.model, site, jobs=self._jobs, named=self._take_model)

    def _take_model(self, name: str, is_scripted: bool) -> None:
        self._target = replace(self._target, model=name)
        self._is_scripted = is_scripted

    async def _ask_once(self, ask: Ask, evidence: Evidence) -> Exchange:
        request = fill(ask, Filling(self._target, self._marker(), 0, evidence), is_scripted=self._is_scripted)
        return await exchange(ask, 0, "", request, self._target.timeout_s)

    def _marker(self) -> str:
        return "m" + "".join(self._random.choices("abcdefghjkmnpqrstuvwxyz", k=9))

    async def _run_case(self, case: Case, probed: Probed) -> Result:
        start = time.monotonic()
        lacking = [need for need in case.needs if need not in probed.capabilities]
        if lacking:
            reason = "; ".join(probed.absent.get(need, f"needs {need.value}") for need in lacking)
            return Result(case, Verdict(case.id, Outcome.UNSUPPORTED, reason=reason), (), 0.0)
        verdicts: list[Verdict] = []
        runs: list[Evidence] = []
        num_good = 0
        while num_good < case.repeats and len(verdicts) < case.repeats + case.tries - 1:
            verdict, evidence = await self._run_once(case)
            verdicts.append(verdict)
            runs.append(evidence)
            if verdict.outcome in (Outcome.FAIL, Outcome.UNSUPPORTED):
                break
            num_good += verdict.outcome is Outcome.PASS
        return Result(case, unite(verdicts), tuple(runs), time.monotonic() - start)

    async def _run_once(self, case: Case) -> tuple[Verdict, Evidence]:
        evidence: dict[str, Sequence[Exchange]] = {}
        try:
            for wave in sorted({ask.wave for ask in case.asks}):
                asks = [ask for ask in case.asks if ask.wave == wave]
                found = await asyncio.gather(*(self._ask(ask, evidence) for ask in asks))
                evidence |= dict(zip((ask.name for ask in asks), found, strict=True))
        except (CannotTell, TargetError) as error:
            return Verdict(case.id, Outcome.INCONCLUSIVE, reason=str(error), num_conclusive=0), evidence
        return judge(case, evidence), evidence

    async def _ask(self, ask: Ask, evidence: Evidence) -> Sequence[Exchange]:
        if ask.delay_s:
            await asyncio.sleep(ask.delay_s)
        return await asyncio.gather(*(self._ask_copy(ask, copy, evidence) for copy in range(ask.copies)))

    async def _ask_copy(self, ask: Ask, copy: int, evidence: Evidence) -> Exchange:
        marker = self._marker()
        request = fill(ask, Filling(self._target, marker, copy, evidence), is_scripted=self._is_scripted)
        found = await exchange(ask, copy, marker, request, self._target.timeout_s)
        if ask.until is not None:
            start = time.monotonic()
            while time.monotonic() - start < ask.until.within_s and not _holds(ask.until, found, evidence):
                await asyncio.sleep(ask.until.every_s)
                found = await exchange(ask, copy, marker, request, self._target.timeout_s)
        return found


def _holds(until: Until, found: Exchange, evidence: Mapping[str, Sequence[Exchange]]) -> bool:
    earlier = [evidence[name][0] for name in until.of]
    try:
        return not list(until.check(*earlier, found, **until.args))
    except CannotTell:
        return False
