"""Samples and runs as tests need them."""

from typing import Any

from tidegate.loadtest.run_summary import Run, Taken, summarise
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.slo import Slo


def done(at: float, *token_at: float, group: str = "all", **changes: Any) -> Sample:
    """A request sent at `at` that was answered with pieces of text at these instants."""
    end = token_at[-1] if token_at else at + 1
    values = {"ended_at": end, "ending": "done", "num_tokens": len(token_at), "finish_reason": "stop"}
    return Sample(group=group, due_at=at, sent_at=at, token_at=list(token_at), **(values | changes))


def failed(at: float, ending: str, detail: str = "", group: str = "all") -> Sample:
    return Sample(group=group, due_at=at, sent_at=at, ended_at=at + 1, ending=ending, detail=detail)


def run_of(*samples: Sample, number: int = 0, slo: Slo | None = None, **changes: Any) -> Run:
    taken = Taken(number=number, begun_at=0.0, ended_at=10.0, samples=samples, **changes)
    return summarise(taken, 0.0, slo or Slo())


def steady(speed: float, number: int = 0, group: str = "all") -> Run:
    """A run with one request whose times are all proportional to `speed`."""
    return run_of(done(0.0, speed, 2 * speed, 3 * speed, group=group), number=number)
