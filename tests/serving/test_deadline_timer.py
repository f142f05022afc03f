"""The timer asks at the right instants, and only while there is something to ask."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidegate.errors import DeadlineExceeded
from tidegate.lifecycle.deadline import Deadlines, TimeLimit, fix_deadlines
from tidegate.serving.deadline_timer import DeadlineTimer
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.virtual_loop import VirtualLoop

Told = list[tuple[float, str]]


def play(scene: Callable[[ManualClock], Awaitable[None]]) -> None:
    clock = ManualClock(now=50.0)

    async def main() -> None:
        await scene(clock)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        runner.run(main())


def timer(deadlines: Deadlines, clock: ManualClock, told: Told, first_token_at: float = 1e9) -> DeadlineTimer:
    def keep(error: DeadlineExceeded) -> None:
        assert error.limit is not None
        told.append((clock.now(), error.limit.name))

    return DeadlineTimer(deadlines, clock, lambda: clock.now() >= first_token_at, keep)


def fix(whole_ms: int | None, first_token_ms: int | None = None) -> Deadlines:
    return fix_deadlines(50.0, [TimeLimit(whole_ms, "request")], [TimeLimit(first_token_ms, "request")])


@pytest.mark.parametrize(
    ("whole_ms", "first_token_ms", "first_token_at", "told"),
    [
        (None, None, 1e9, []),
        (300, None, 1e9, [(50.3, "deadline_ms")]),
        (None, 300, 1e9, [(50.3, "first_token_deadline_ms")]),
        (None, 300, 50.2, []),
        (500, 300, 50.2, [(50.5, "deadline_ms")]),
        (500, 300, 50.4, [(50.3, "first_token_deadline_ms")]),
        (200_000_000, None, 1e9, [(200_050.0, "deadline_ms")]),
    ],
)
def test_the_deadline_that_passes_first_is_told_once_and_at_its_instant(  # DL-1
    whole_ms: int | None, first_token_ms: int | None, first_token_at: float, told: Told
) -> None:
    async def scene(clock: ManualClock) -> None:
        heard: Told = []
        timer(fix(whole_ms, first_token_ms), clock, heard, first_token_at).check()
        await asyncio.sleep(300_000)
        assert heard == told

    play(scene)


def test_a_deadline_that_has_passed_is_told_at_once() -> None:  # DL-1
    async def scene(clock: ManualClock) -> None:
        heard: Told = []
        clock.advance(2.0)
        timer(fix(1000), clock, heard).check()
        assert heard == [(52.0, "deadline_ms")]

    play(scene)


def test_a_cancelled_timer_says_nothing() -> None:
    async def scene(clock: ManualClock) -> None:
        heard: Told = []
        cancelled = timer(fix(1000), clock, heard)
        cancelled.check()
        cancelled.cancel()
        cancelled.cancel()
        await asyncio.sleep(10)
        assert heard == []

    play(scene)


def test_the_virtual_loop_raises_where_a_real_one_would_hang() -> None:
    async def scene(_: ManualClock) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="nothing will ever happen"):
        play(scene)
