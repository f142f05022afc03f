"""From the exchanges of a case to its verdict. Pure: a recording is judged as the run was.

Decides: which checks apply to which exchanges, and what several runs of a case say together. Does not know how the
exchanges came about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate.conformance.case import Case, Expect
from tidegate.conformance.exchange import Exchange
from tidegate.conformance.honest_refusal import describe_refusal
from tidegate.conformance.verdict import CannotTell, Fault, Outcome, Refused, Verdict

Evidence = Mapping[str, Sequence[Exchange]]
"""The exchanges of one run of a case: name of the ask to its copies, in order."""


def judge(case: Case, evidence: Evidence) -> Verdict:
    """Returns the verdict of one run."""
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
    return replace(worst, num_runs=len(verdicts), num_conclusive=len(conclusive))
