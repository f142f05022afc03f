"""From the exchanges of a case to its verdict. Pure: a recording is judged as the run was.

Decides: which checks apply to which exchanges, and what several runs of a case say together. Does not know how the
exchanges came about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.conformance.case import Case, Expect
from tidegate.conformance.honest_refusal import describe_refusal
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.verdict import CannotTell, Fault, Outcome, Refused, Verdict
from tidegate.conformance.wire.exchange import Exchange

Evidence = Mapping[str, Sequence[Exchange]]
"""The exchanges of one run of a case: name of the ask to its copies, in order."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One run of a case. `stopped`: why it ended before all was asked; empty: it did not. `is_suite_fault`: because the
    suite itself failed.
    """

    evidence: Evidence
    stopped: str = ""
    is_suite_fault: bool = False


def judge_need(case: Case, probed: Probed) -> Verdict | None:
    """Returns the verdict where the server lacks what the case needs; None where it has all."""
    lacking = [need for need in case.needs if need not in probed.capabilities]
    if not lacking:
        return None
    reason = "; ".join(probed.absent.get(need, f"needs {need.value}") for need in lacking)
    return Verdict(case.id, Outcome.UNSUPPORTED, reason=reason, num_runs=0, num_conclusive=0)


def judge_run(case: Case, run: CaseRun) -> Verdict:
    """Returns the verdict of one run, also of one that was stopped or that another version of the suite made."""
    if run.stopped:
        return _unsure(case, run.stopped, is_suite_fault=run.is_suite_fault)
    if any(ask.name not in run.evidence for ask in case.asks):
        return _unsure(case, "the recording was made with another version of this case")
    try:
        return judge(case, run.evidence)
    except Exception as error:
        return _unsure(case, describe_suite_fault(error), is_suite_fault=True)


def describe_suite_fault(error: Exception) -> str:
    """Returns in words that a check or a derived value failed where it should have found something."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" in {frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
    return f"the suite itself failed: {type(error).__name__}: {str(error)[:300]}{where}"


def _unsure(case: Case, reason: str, *, is_suite_fault: bool = False) -> Verdict:
    return Verdict(case.id, Outcome.INCONCLUSIVE, reason=reason, num_conclusive=0, is_suite_fault=is_suite_fault)


def judge(case: Case, evidence: Evidence) -> Verdict:
    """Returns the verdict of one run in which all was asked. Raises what a check with a defect raises."""
    for ask in case.asks:
        for exchange in evidence[ask.name] if ask.is_refusable else ():
            if (refusal := describe_refusal(exchange)) is not None:
                return Verdict(case.id, Outcome.UNSUPPORTED, reason=refusal)
    faults: list[Fault] = []
    unsure = ""
    for expectation in case.expects:
        try:
            faults += _apply(expectation, evidence)
        except CannotTell as error:
            unsure = unsure or str(error)
        except Refused as error:
            return Verdict(case.id, Outcome.UNSUPPORTED, reason=str(error))
    if faults:
        return Verdict(case.id, Outcome.FAIL, tuple(faults))
    if unsure:
        return Verdict(case.id, Outcome.INCONCLUSIVE, reason=unsure, num_conclusive=0)
    return Verdict(case.id, Outcome.PASS)


def _apply(expectation: Expect, evidence: Evidence) -> Iterable[Fault]:
    name = expectation.on[0]
    if expectation.over_copies:
        for fault in expectation.check(tuple(evidence[name]), **expectation.args):
            yield replace(fault, ask=fault.ask or name)
    elif len(expectation.on) == 1:
        for exchange in evidence[name]:
            for fault in expectation.check(exchange, **expectation.args):
                yield replace(fault, ask=fault.ask or name, copy=exchange.copy)
    else:
        exchanges = [evidence[other][0] for other in expectation.on]
        for fault in expectation.check(*exchanges, **expectation.args):
            yield replace(fault, ask=fault.ask or name)


def unite(verdicts: Sequence[Verdict]) -> Verdict:
    """Returns what several runs of one case say together: a fault in any run is a fault; it is inconclusive only when
    no run told something.
    """
    conclusive = [verdict for verdict in verdicts if verdict.outcome is not Outcome.INCONCLUSIVE]
    order = (Outcome.FAIL, Outcome.UNSUPPORTED, Outcome.PASS, Outcome.INCONCLUSIVE)
    worst = min(verdicts, key=lambda verdict: order.index(verdict.outcome))
    return replace(
        worst,
        num_runs=len(verdicts),
        num_conclusive=len(conclusive),
        is_suite_fault=any(verdict.is_suite_fault for verdict in verdicts),
    )
