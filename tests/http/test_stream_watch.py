"""The one ticker: who is idle, who is stuck, as a table of looks."""

import asyncio
from typing import Any

import pytest

from tidegate.http.stream_watch import StreamMark, StreamWatch

LINE = ("127.0.0.1", 9, 8000)


class Clock:
    def now(self) -> float:
        return 0.0

    def wall(self) -> float:
        return 0.0


class Reply:
    def __init__(self) -> None:
        self.num_nudges = 0

    def nudge(self) -> None:
        self.num_nudges += 1


class Task:
    def __init__(self) -> None:
        self.num_cancels = 0

    def cancel(self) -> None:
        self.num_cancels += 1


def watch_one(acts_at_looks: list[tuple[float, int]]) -> tuple[StreamMark, Any, Any, list[set[Any]]]:
    """Looks at one stream at the given times, with its count of acts at each."""
    stuck: list[set[Any]] = []
    reply, task = Reply(), Task()

    async def go() -> StreamMark:
        watch = StreamWatch(Clock(), heartbeat_s=15, slow_client_timeout_s=30, on_stuck=stuck.append)
        mark = StreamMark(reply, task, LINE)  # type: ignore[arg-type]
        watch.add(mark)
        for now, num_acts in acts_at_looks:
            mark.num_acts = num_acts
            watch.look(now)
        watch.discard(mark)
        assert watch.num_streams == 0
        return mark

    return asyncio.run(go()), reply, task, stuck


@pytest.mark.parametrize(
    ("looks", "num_nudges"),
    [
        ([(0, 2), (14, 2)], 0),
        ([(0, 2), (15, 2)], 1),
        ([(0, 2), (15, 2), (16, 2), (40, 2)], 1),
        ([(0, 2), (15, 2), (16, 4), (30, 4)], 1),
        ([(0, 2), (15, 2), (16, 4), (31, 4)], 2),
        ([(0, 2), (10, 4), (20, 6), (30, 8), (40, 10)], 0),
        ([(0, 1), (29, 1)], 0),
    ],
)
def test_a_stream_is_nudged_once_for_each_idle_time(looks: list[tuple[float, int]], num_nudges: int) -> None:
    _, reply, task, _ = watch_one(looks)
    assert (reply.num_nudges, task.num_cancels) == (num_nudges, 0)


@pytest.mark.parametrize(
    ("looks", "num_cancels"),
    [
        ([(0, 1), (29, 1)], 0),
        ([(0, 1), (30, 1)], 1),
        ([(0, 1), (30, 1), (60, 1), (90, 1)], 1),
        ([(0, 1), (29, 3), (58, 5), (80, 7)], 0),
        ([(0, 1), (29, 2), (58, 2), (90, 2)], 0),
    ],
)
def test_a_send_that_does_not_return_ends_its_stream_once(looks: list[tuple[float, int]], num_cancels: int) -> None:
    mark, _, task, stuck = watch_one(looks)
    assert task.num_cancels == num_cancels
    assert stuck == [{LINE}] * num_cancels
    assert mark.cause == ("slow_client" if num_cancels else None)


def test_the_ticker_runs_only_while_there_are_streams() -> None:
    async def go() -> None:
        watch = StreamWatch(Clock(), heartbeat_s=15, slow_client_timeout_s=30, on_stuck=lambda peers: None)
        marks = [StreamMark(Reply(), Task(), None) for _ in range(2)]  # type: ignore[arg-type]
        for mark in marks:
            watch.add(mark)
        assert watch._timer is not None
        watch.discard(marks[0])
        assert watch._timer is not None
        watch.discard(marks[1])
        watch.discard(marks[1])
        assert watch._timer is None

    asyncio.run(go())
