"""From what came of a run to the document that all reports are made from. Pure."""

import inspect
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from tidegate import __version__
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect
from tidegate.conformance.clauses.clause import CLAUSES, Clause
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.reports.ask_sketch import spell_path
from tidegate.conformance.reports.ask_words import describe_ask
from tidegate.conformance.reports.curl_line import MAX_CURL_BODY_BYTES, curl_line
from tidegate.conformance.reports.document import (
    AreaDocument,
    AskDocument,
    CapabilityDocument,
    CaseDocument,
    CheckDocument,
    ClauseDocument,
    Counts,
    FaultDocument,
    ReportDocument,
    ServerDocument,
)
from tidegate.conformance.reports.secrets_out import SecretsOut
from tidegate.conformance.reports.spans import show_spans
from tidegate.conformance.reports.transcripts import show_transcripts
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.verdict import Fault, Outcome

MAX_FAULTS = 40
"""Of one case; more are counted."""
MAX_FAULT_CHARS = 2000
MAX_COMMANDS = 8
MAX_PASSED_COMMANDS = 1
"""Of a case that passed."""
MAX_PASSED_BODY_BYTES = 1024
"""In a command of a case that passed; a larger body is named, not spelled."""
_RAISED = {"Raises CannotTell": "Tells nothing", "Raises Refused": "Unsupported"}
"""What the documentation of an assertion calls by its exception, in the words of reports."""


def build_document(report: RunReport) -> ReportDocument:
    """Returns everything that there is to show; credentials are taken out, sizes bounded."""
    secrets = SecretsOut((report.target.api_key, report.target.admin_token))
    probed = report.probed
    return ReportDocument(
        suite_version=__version__,
        started_at=report.started_at,
        duration_s=round(report.duration_s, 3),
        seed=report.target.seed,
        server=ServerDocument(
            base_url=report.target.base_url,
            model=secrets.of_text(probed.model),
            identity={
                name: secrets.of_text(value)[:MAX_FAULT_CHARS] for name, value in probed.identity.items() if value
            },
            is_scripted=probed.is_scripted,
            has_contract=probed.has_contract,
        ),
        capabilities=tuple(_capability(capability, report, secrets) for capability in Capability),
        counts=_count(report.results),
        stopped=secrets.of_text(report.stopped),
        not_run=report.not_run,
        areas=tuple(AreaDocument(name=area, counts=_count(results)) for area, results in report.by_area().items()),
        cases=tuple(_case(result, secrets) for result in report.results),
    )


def _capability(capability: Capability, report: RunReport, secrets: SecretsOut) -> CapabilityDocument:
    is_there = capability in report.probed.capabilities
    reasons: Mapping[Capability, str] = report.probed.found_by if is_there else report.probed.absent
    return CapabilityDocument(
        name=capability.name.lower(),
        title=capability.value,
        is_there=is_there,
        reason=secrets.of_text(reasons.get(capability, ""))[:MAX_FAULT_CHARS],
    )


def _count(results: Iterable[Result]) -> Counts:
    outcomes = [result.verdict.outcome for result in results]
    return Counts(
        passed=outcomes.count(Outcome.PASS),
        failed=outcomes.count(Outcome.FAIL),
        unsupported=outcomes.count(Outcome.UNSUPPORTED),
        inconclusive=outcomes.count(Outcome.INCONCLUSIVE),
    )


def _case(result: Result, secrets: SecretsOut) -> CaseDocument:
    case, verdict = result.case, result.verdict
    transcripts, cut = show_transcripts(result.runs, verdict, secrets)
    spans, num_spans = show_spans(result)
    return CaseDocument(
        id=case.id,
        area=case.area,
        title=case.title,
        why=case.why,
        severity=case.severity.value,
        profile=case.profile.value,
        clauses=describe_clauses(case),
        needs=tuple(need.name.lower() for need in case.needs),
        asks=tuple(_describe(ask) for ask in case.asks),
        checks=tuple(describe_check(expectation) for expectation in case.expects),
        outcome=verdict.outcome.value,
        faults=tuple(_fault(fault, secrets) for fault in verdict.faults[:MAX_FAULTS]),
        num_faults=len(verdict.faults),
        reason=secrets.of_text(verdict.reason)[:MAX_FAULT_CHARS],
        num_runs=verdict.num_runs,
        num_conclusive=verdict.num_conclusive,
        duration_s=round(result.duration_s, 3),
        by_hand=_by_hand(result, secrets),
        spans=spans,
        num_spans=num_spans,
        num_exchanges=sum(len(copies) for evidence in result.runs for copies in evidence.values()),
        transcripts=transcripts,
        cut=cut,
    )


def describe_clauses(case: Case) -> tuple[ClauseDocument, ...]:
    """Returns the clauses that a case checks, in its order. No report is lost for one that is not written down; a
    test finds it.
    """
    clauses = [CLAUSES.get(name, Clause(name, name, "not written down")) for name in case.clauses]
    return tuple(ClauseDocument(id=clause.id, text=clause.text, source=clause.source) for clause in clauses)


def _describe(ask: Ask) -> AskDocument:
    return AskDocument(
        name=ask.name,
        method=ask.method,
        path=spell_path(ask),
        wave=ask.wave,
        copies=ask.copies,
        says=tuple(describe_ask(ask)),
    )


def describe_check(expectation: Expect) -> CheckDocument:
    """Returns what an assertion says: the first paragraph of its documentation, and its arguments."""
    says = " ".join((inspect.getdoc(expectation.check) or "").partition("\n\n")[0].split())
    for raised, told in _RAISED.items():
        says = says.replace(raised, told)
    args = ", ".join(f"{name} = {_spell(value)}" for name, value in expectation.args.items())
    return CheckDocument(
        name=expectation.check.__name__,
        says=says,
        on=expectation.on,
        args=args if len(args) <= MAX_FAULT_CHARS else args[: MAX_FAULT_CHARS - 1] + "…",
    )


def _spell(value: Any) -> str:
    """Functions by name: their addresses differ from run to run. Members of enums by their value."""
    if isinstance(value, Enum):
        return _spell(value.value)
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, tuple) and len(value) == 1:
        return _spell(value[0])
    if isinstance(value, list | tuple):
        return ", ".join(map(_spell, value))
    if isinstance(value, set | frozenset):
        return ", ".join(sorted(map(_spell, value)))
    return repr(value)


def _fault(fault: Fault, secrets: SecretsOut) -> FaultDocument:
    says = secrets.of_text(fault.says)
    if len(says) > MAX_FAULT_CHARS:
        says = says[: MAX_FAULT_CHARS - 1] + "…"
    return FaultDocument(says=says, ask=fault.ask, copy=fault.copy, event=fault.event)


def _by_hand(result: Result, secrets: SecretsOut) -> tuple[str, ...]:
    """One command for each ask of the last run; those of faults first."""
    evidence = result.runs[-1] if result.runs else {}
    named = [fault.ask for fault in result.verdict.faults]
    asks = sorted((ask for ask in result.case.asks if evidence.get(ask.name)), key=lambda ask: ask.name not in named)
    commands = []
    has_passed = result.verdict.outcome is Outcome.PASS
    max_bytes = MAX_PASSED_BODY_BYTES if has_passed else MAX_CURL_BODY_BYTES
    for ask in asks[: MAX_PASSED_COMMANDS if has_passed else MAX_COMMANDS]:
        exchange = evidence[ask.name][0]
        line = curl_line(exchange.method, exchange.url, exchange.request, max_body_bytes=max_bytes)
        remarks = describe_ask(ask)
        comment = f"# {ask.name}: here it {'; '.join(remarks)}\n" if remarks else ""
        commands.append(secrets.of_text(comment + line))
    return tuple(commands)
