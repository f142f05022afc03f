"""CaseRunner: runs one case: wave after wave, copies and delays, until it is told enough. Judges nothing itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from tidegate.conformance.ask import Ask, Until
from tidegate.conformance.case import Case, Turn
from tidegate.conformance.judge import CaseRun, Evidence, describe_suite_fault, judge_need, judge_run
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.running.marker import make_marker, make_seed
from tidegate.conformance.running.run_report import Result, result_of
from tidegate.conformance.running.server_watch import ServerWatch, is_doubtful
from tidegate.conformance.verdict import CannotTell, Outcome
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.fill import Filling, WireRequest, fill
from tidegate.conformance.wire.target import Target, TargetError

Sending = Callable[[Ask, WireRequest, float, asyncio.Event | None], Awaitable[Exchange]]
"""Sends a request; the number is the instant from which `sent_at_s` counts, the event says that the asks beside it are
answered.
"""


class CaseRunner:
    """Of one run against one server. `target` names the model."""

    def __init__(self, target: Target, probed: Probed, send: Sending, watch: ServerWatch) -> None:
        self._target = target
        self._probed = probed
        self._send = send
        self._watch = watch

    async def run(self, case: Case) -> Result:
        """Returns what came of the case. Never raises for what the server does, nor for a check with a defect."""
        start = time.monotonic()
        if (verdict := judge_need(case, self._probed)) is not None:
            return Result(case, verdict, (), 0.0)
        runs: list[CaseRun] = []
        num_passed = 0
        while num_passed < case.repeats and len(runs) < case.repeats + case.tries - 1:
            if self._watch.gone:
                runs.append(CaseRun({}, self._watch.gone))
                break
            runs.append(await self._run_once(case, len(runs)))
            verdict = judge_run(case, runs[-1])
            if verdict.outcome in (Outcome.FAIL, Outcome.UNSUPPORTED) or verdict.is_suite_fault:
                break
            num_passed += verdict.outcome is Outcome.PASS
        return result_of(case, runs, time.monotonic() - start)

    async def _run_once(self, case: Case, number: int) -> CaseRun:
        evidence: dict[str, Sequence[Exchange]] = {}
        scene = _Scene(self._target, self._probed, self._send, case, number)
        waves = sorted({ask.wave for ask in case.asks})
        lasting: list[_Lasting] = []
        try:
            async with asyncio.TaskGroup() as group:
                for wave in waves:
                    asks = [ask for ask in case.asks if ask.wave == wave]
                    lasting += [_Lasting(ask, scene, evidence, group) for ask in asks if ask.is_lasting]
                    evidence = evidence | await _ask_wave([ask for ask in asks if not ask.is_lasting], scene, evidence)
                    ended = [one for one in lasting if one.last_wave <= wave or wave == waves[-1]]
                    lasting = [one for one in lasting if one not in ended]
                    evidence = evidence | {one.name: await one.end() for one in ended}
                    if case.turn is not Turn.LAST and await self._is_gone(asks, evidence):
                        for one in lasting:
                            one.cancel()
                        return CaseRun(evidence, f"{self._watch.gone}; it went away while this case ran")
        except ExceptionGroup as errors:
            error = _first(errors)
            if isinstance(error, CannotTell | TargetError):
                return CaseRun(evidence, str(error))
            return CaseRun(evidence, describe_suite_fault(error), is_suite_fault=True)
        return CaseRun(evidence)

    async def _is_gone(self, asks: Sequence[Ask], evidence: Evidence) -> bool:
        doubts = any(is_doubtful(exchange, ask) for ask in asks for exchange in evidence.get(ask.name, ()))
        return doubts and bool(await self._watch.look())


class _Lasting:
    """An ask that goes on beside others; begun when made."""

    def __init__(self, ask: Ask, scene: "_Scene", evidence: Evidence, group: asyncio.TaskGroup) -> None:
        self.name = ask.name
        self.last_wave = ask.wave if ask.last_wave is None else ask.last_wave
        self._others = asyncio.Event()
        self._task = group.create_task(scene.ask(ask, evidence, self._others))

    async def end(self) -> Sequence[Exchange]:
        """Tells it that the others are answered; returns its exchanges."""
        self._others.set()
        return await self._task

    def cancel(self) -> None:
        self._task.cancel()


async def _ask_wave(asks: Sequence[Ask], scene: "_Scene", evidence: Evidence) -> dict[str, Sequence[Exchange]]:
    """Returns the exchanges of asks that are sent at once."""
    async with asyncio.TaskGroup() as group:
        tasks = {ask.name: group.create_task(scene.ask(ask, evidence)) for ask in asks}
    return {name: task.result() for name, task in tasks.items()}


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


class _Scene:
    """One run of a case: what all its asks share."""

    def __init__(self, target: Target, probed: Probed, send: Sending, case: Case, number: int) -> None:
        self._target = target
        self._is_scripted = probed.is_scripted
        self._ignores_eos = Capability.IGNORE_EOS in probed.capabilities
        self._send = send
        self._names = (case.id, number)
        self._origin = time.monotonic()

    async def ask(self, ask: Ask, evidence: Evidence, others: asyncio.Event | None = None) -> Sequence[Exchange]:
        """Returns the exchanges of all copies, in order."""
        if self._is_scripted and ask.script_manner is not None:
            ask = replace(ask, manner=ask.script_manner)
        if ask.delay_s:
            await asyncio.sleep(ask.delay_s)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask_copy(ask, copy, evidence, others)) for copy in range(ask.copies)]
        return tuple(task.result() for task in tasks)

    async def _ask_copy(self, ask: Ask, copy: int, evidence: Evidence, others: asyncio.Event | None) -> Exchange:
        filling = Filling(
            self._target,
            make_marker(self._target.seed, *self._names, ask.name, copy),
            copy,
            evidence,
            make_seed(self._target.seed, *self._names),
        )
        request = fill(ask, filling, is_scripted=self._is_scripted, ignores_eos=self._ignores_eos)
        found = await self._send(ask, request, self._origin, others)
        if ask.until is not None:
            end = time.monotonic() + ask.until.within_s
            is_last = False
            while not _holds(ask.until, found, evidence) and not is_last:
                is_last = time.monotonic() >= end  # slow answers too get their time: the last is asked after it
                await asyncio.sleep(ask.until.every_s)
                found = await self._send(ask, request, self._origin, others)
        return found


def _holds(until: Until, found: Exchange, evidence: Mapping[str, Sequence[Exchange]]) -> bool:
    earlier = [evidence[name][0] for name in until.of]
    try:
        return not list(until.check(*earlier, found, **until.args))
    except CannotTell:
        return False
