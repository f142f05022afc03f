"""What `tidegate bench` shows while it runs: a bar on a terminal, else a line for each run. To standard error."""

import time
from collections import deque
from types import TracebackType
from typing import TextIO

from rich.text import Text

from tidegate.cli.terminal import make_bar, open_console
from tidegate.loadtest.distribution import describe
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.target import Target
from tidegate.reporting.numbers import digits, spell_time

LINE_EVERY_S = 10.0
BAR_EVERY_S = 0.5
KEPT_FIRSTS = 1000
"""Of the last requests; more would cost time that the load needs."""


class BenchProgress:
    """Used as a context manager around all runs."""

    def __init__(self, *, num_runs: int, stream: TextIO | None = None) -> None:
        self._console = open_console(stream)
        self._num_runs = num_runs
        self._title = ""
        self._num_requests = 0
        self._num_ended = self._num_errors = self._num_tokens = 0
        self._firsts: deque[float] = deque(maxlen=KEPT_FIRSTS)
        self._begun_at = self._told_at = time.monotonic()
        self._bar = make_bar(self._console)
        if self._bar is not None:
            self._task = self._bar.add_task("preparing", total=None)

    def __enter__(self) -> "BenchProgress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_run()
        if self._bar is not None:
            self._bar.stop()

    def begin_run(self, target: Target, number: int | None, num_requests: int) -> None:
        """A run begins."""
        self._end_run()
        run = "warm-up" if number is None else f"run {number + 1} of {self._num_runs}"
        self._title, self._num_requests = f"{target.label}, {run}", num_requests
        self._begun_at = self._told_at = time.monotonic()
        if self._bar is not None:
            self._bar.reset(self._task, total=num_requests, description=self._title)

    def take(self, sample: Sample) -> None:
        """A request has ended."""
        self._num_ended += 1
        self._num_errors += sample.is_error
        self._num_tokens += sample.num_tokens
        if sample.ttft_s is not None:
            self._firsts.append(sample.ttft_s)
        now = time.monotonic()
        is_due = now - self._told_at >= (LINE_EVERY_S if self._bar is None else BAR_EVERY_S)
        if is_due:
            self._told_at = now
        if self._bar is not None:
            text = f"{self._title}: {self._tell_rate(now)}" if is_due else None
            self._bar.update(self._task, completed=self._num_ended, description=text)
        elif is_due:
            self._console.print(Text(f"{self._title}: {self._num_ended}/{self._num_requests}, {self._tell(now)}"))

    def _end_run(self) -> None:
        if self._num_ended:
            self._console.print(Text(f"{self._title}: {self._num_ended} requests, {self._tell(time.monotonic())}"))
        self._num_ended = self._num_errors = self._num_tokens = 0
        self._firsts.clear()

    def _tell_rate(self, now: float) -> str:
        return f"{digits(self._num_tokens / max(now - self._begun_at, 1e-9))} tokens/s"

    def _tell(self, now: float) -> str:
        words = [self._tell_rate(now), f"{self._num_errors} errors" if self._num_errors else "no errors"]
        first = describe(self._firsts)
        if first is not None:
            words.insert(1, f"first token p50 {spell_time(first.p50)}, p99 {spell_time(first.p99)}")
        return ", ".join(words)
