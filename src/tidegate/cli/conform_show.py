"""`tidegate conform --list` and `--show`: the cases as text, without a server."""

from collections.abc import Iterable, Iterator

from tidegate.conformance.case import Case
from tidegate.conformance.reports.ask_sketch import sketch_curl, spell_path
from tidegate.conformance.reports.ask_words import describe_ask
from tidegate.conformance.reports.builder import describe_check, describe_clauses


def list_cases(cases: Iterable[Case]) -> Iterator[str]:
    """Yields a line for each case: id, profile, severity, what must be so."""
    cases = tuple(cases)
    width = max((len(case.id) for case in cases), default=0)
    for case in cases:
        yield f"{case.id:<{width}}  {case.profile.value:<8}  {case.severity.value:<14}  {case.title}"


def show_case(case: Case) -> Iterator[str]:
    """Yields lines: what a case asks, what must hold, why, by which clause, and how to ask it by hand."""
    yield f"{case.id}: {case.title}"
    yield ""
    yield f"why       {case.why}"
    yield f"severity  {case.severity.value}"
    yield f"profile   {case.profile.value}"
    if case.needs:
        yield f"needs     {', '.join(need.value for need in case.needs)}"
    if case.repeats > 1:
        yield f"repeats   {case.repeats} runs, each of which must hold"
    if case.tries > 1:
        yield f"tries     up to {case.tries - 1} more while the answers tell nothing"
    yield f"runs      {case.turn.value}"
    for clause in describe_clauses(case):
        yield f"clause    {clause.text} ({clause.source}; {clause.id})"
    for expectation in case.expects:
        check = describe_check(expectation)
        yield f"must hold {check.says} Of {', '.join(expectation.on)}."
    yield ""
    yield "by hand, with the server's address without /v1 in BASE_URL, and MODEL and API_KEY:"
    for ask in sorted(case.asks, key=lambda ask: ask.wave):
        yield ""
        yield f"# {ask.name}: {ask.method} {spell_path(ask)}" + "".join(f"; {words}" for words in describe_ask(ask))
        yield sketch_curl(ask)
