"""What is shown while cases run: a bar on a terminal, lines elsewhere, and no control characters of a server's."""

import io

import pytest

from tidegate.cli.conform_progress import ProgressView, describe_result
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity
from tidegate.conformance.running.run_report import Result
from tidegate.conformance.verdict import Fault, Outcome, Verdict

CASE = Case(
    id="chat.object",
    title="t",
    why="w",
    clauses=(),
    severity=Severity.WRONG_DATA,
    asks=(Ask(),),
    expects=(),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def result(outcome: Outcome, says: str = "", *, num_runs: int = 1, num_conclusive: int = 1) -> Result:
    faults = (Fault(says),) if outcome is Outcome.FAIL else ()
    verdict = Verdict(CASE.id, outcome, faults, says, num_runs, num_conclusive)
    return Result(CASE, verdict, (), 0.1)


LINES: dict[str, tuple[Result, str]] = {
    "pass": (result(Outcome.PASS), "✓ chat.object"),
    "fail": (result(Outcome.FAIL, "no object"), "✕ chat.object (wrong data): no object"),
    "unsure": (
        result(Outcome.INCONCLUSIVE, "too short", num_runs=3, num_conclusive=0),
        "? chat.object [0 of 3 runs told something]: too short",
    ),
    "unsupported": (result(Outcome.UNSUPPORTED, "no tools", num_runs=0), "– chat.object: no tools"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_result_is_one_line(name: str) -> None:
    made, line = LINES[name]
    assert describe_result(made) == line


def shown(stream: io.StringIO, *results: Result, tells_all: bool = False) -> str:
    with ProgressView(len(results), tells_all=tells_all, stream=stream) as view:
        for one in results:
            view.tell(one)
    return stream.getvalue()


def test_without_a_terminal_only_failures_are_lines() -> None:
    results = (result(Outcome.PASS), result(Outcome.FAIL, "no object"))
    assert shown(io.StringIO(), *results) == "✕ chat.object (wrong data): no object\n"
    assert len(shown(io.StringIO(), *results, tells_all=True).splitlines()) == 2


def test_on_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), result(Outcome.PASS), result(Outcome.FAIL, "no object"))
    assert "2/2" in text
    assert "no object" in text


def test_what_a_server_says_does_not_steer_the_terminal() -> None:
    line = shown(io.StringIO(), result(Outcome.FAIL, "\x1b]0;owned\x07[red]x[/red]\nsecond line " + "y" * 500))
    assert "\x1b" not in line
    assert line.count("\n") == 1
    assert "[red]x[/red]" in line
    assert len(line) < 300
