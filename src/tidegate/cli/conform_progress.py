"""What `tidegate conform` shows while it runs: a bar on a terminal, else a line for each case that does not pass.

All of it goes to standard error: standard output holds the summary.
"""

from types import TracebackType
from typing import TextIO

from rich.text import Text

from tidegate.cli.terminal import make_bar, open_console
from tidegate.conformance.reports.words import SIGNS
from tidegate.conformance.running.run_report import Result
from tidegate.conformance.verdict import Outcome
from tidegate.reporting.visible_text import one_line

MAX_CHARS = 200


def describe_result(result: Result) -> str:
    """Returns a line: sign, id, severity of a failure, and the first thing that it says."""
    verdict = result.verdict
    says = verdict.faults[0].says if verdict.faults else verdict.reason
    weight = f" ({result.case.severity.value})" if verdict.outcome is Outcome.FAIL else ""
    sure = f" [{verdict.confidence}]" if verdict.confidence and verdict.outcome is not Outcome.UNSUPPORTED else ""
    line = f"{SIGNS[verdict.outcome.value]} {result.case.id}{weight}{sure}"
    return one_line(f"{line}: {says}" if says else line, MAX_CHARS)


class ProgressView:
    """Used as a context manager around a run of `num_cases`. `tells_all`: also cases that pass get a line."""

    def __init__(self, num_cases: int, *, tells_all: bool = False, stream: TextIO | None = None) -> None:
        self._console = open_console(stream)
        self._tells_all = tells_all
        self._bar = make_bar(self._console)
        if self._bar is not None:
            self._task = self._bar.add_task("asking", total=num_cases)

    def __enter__(self) -> "ProgressView":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def count(self, result: Result) -> None:
        """Moves the bar on, whatever came of the case."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=result.case.area)

    def tell(self, result: Result) -> None:
        """Shows that a case is done."""
        self.count(result)
        if self._tells_all or result.verdict.outcome is Outcome.FAIL or result.verdict.is_suite_fault:
            self._console.print(Text(describe_result(result)))
