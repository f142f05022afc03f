"""One ticker for all streams of an application: no stream has a timer of its own.

Decides, from how far each stream has come since the last look, which ones get a heartbeat and which ones are stuck.
A stream counts its acts: one when it begins to send, one when the send has returned; an odd count is a send that has
not returned. Times are those of the looks, so everything happens up to one tick late. It does not know what is sent.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from tidegate.clock import Clock
from tidegate.http.connection_abort import Line

MAX_TICK_S = 1.0
_TICKS = 10


class Nudged(Protocol):
    """The part of a stream's reply that the watch uses."""

    def nudge(self) -> None: ...


class StreamMark:
    """How far one stream has come. The writer changes `num_acts`, the watch everything else."""

    __slots__ = ("cause", "line", "num_acts", "ping_at", "reply", "seen_acts", "since", "task")

    def __init__(self, reply: Nudged, task: "asyncio.Task[None]", line: Line | None) -> None:
        self.reply = reply
        self.task = task
        self.line = line
        self.num_acts = 0
        self.ping_at: int | None = None
        """The act count at which a heartbeat fell due; out of date as soon as the count has moved."""
        self.cause: str | None = None
        """Why the watch ended this stream."""
        self.seen_acts = -1
        self.since = 0.0


class StreamWatch:
    """Runs only while there are streams."""

    def __init__(
        self,
        clock: Clock,
        *,
        heartbeat_s: float,
        slow_client_timeout_s: float,
        on_stuck: Callable[[set[Line]], object],
    ) -> None:
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._slow_client_timeout_s = slow_client_timeout_s
        self._on_stuck = on_stuck
        self._tick_s = min(MAX_TICK_S, heartbeat_s / _TICKS, slow_client_timeout_s / _TICKS)
        self._marks: set[StreamMark] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def num_streams(self) -> int:
        return len(self._marks)

    def add(self, mark: StreamMark) -> None:
        mark.since = self._clock.now()
        self._marks.add(mark)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    def discard(self, mark: StreamMark) -> None:
        self._marks.discard(mark)
        if not self._marks and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, now: float) -> None:
        """Looks at every stream once: nudges the idle ones, ends the stuck ones."""
        stuck: set[Line] = set()
        for mark in self._marks:
            num_acts = mark.num_acts
            if mark.seen_acts != num_acts:
                mark.seen_acts = num_acts
                mark.since = now
            elif num_acts & 1:
                if now - mark.since >= self._slow_client_timeout_s and mark.cause is None:
                    mark.cause = "slow_client"
                    mark.task.cancel()
                    if mark.line is not None:
                        stuck.add(mark.line)
            elif now - mark.since >= self._heartbeat_s and mark.ping_at != num_acts:
                mark.ping_at = num_acts
                mark.reply.nudge()
        if stuck:
            self._on_stuck(stuck)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
        self.look(self._clock.now())
