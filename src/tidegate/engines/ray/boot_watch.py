"""Which batches of an event stream count, and under which epoch.

An actor's process says in each batch which start of it (boot) speaks, and counts its batches. One stream belongs to
one boot: a batch of another one, or a number left out, means that something was lost on the way, and with it the
stream. The engine in the actor counts starts of its own; both together are one epoch of the server's. Does not know:
Ray, bytes, requests.
"""

from enum import Enum, auto


class StreamState(Enum):
    OPENING = auto()
    """Asked for; nothing has come yet."""
    OPEN = auto()
    BROKEN = auto()
    """Nothing more is believed. Whatever was open has failed."""


class BatchFact(Enum):
    FIRST = auto()
    """Number 1, of any boot, on a stream that has not begun."""
    NEXT = auto()
    """The next number, of the stream's boot."""
    REPEATED = auto()
    """A number that has been there, of the stream's boot."""
    GAP = auto()
    """A number further on: something was lost."""
    OTHER_BOOT = auto()


class Verdict(Enum):
    TAKE = auto()
    DROP = auto()
    """Stale: it counts for nothing."""
    LOSE = auto()
    """The stream is to be given up, this batch included."""


RULES: dict[tuple[StreamState, BatchFact], tuple[StreamState, Verdict]] = {
    (StreamState.OPENING, BatchFact.FIRST): (StreamState.OPEN, Verdict.TAKE),
    (StreamState.OPENING, BatchFact.GAP): (StreamState.BROKEN, Verdict.LOSE),
    (StreamState.OPEN, BatchFact.NEXT): (StreamState.OPEN, Verdict.TAKE),
    (StreamState.OPEN, BatchFact.REPEATED): (StreamState.OPEN, Verdict.DROP),
    (StreamState.OPEN, BatchFact.GAP): (StreamState.BROKEN, Verdict.LOSE),
    (StreamState.OPEN, BatchFact.OTHER_BOOT): (StreamState.BROKEN, Verdict.LOSE),
    (StreamState.BROKEN, BatchFact.NEXT): (StreamState.BROKEN, Verdict.DROP),
    (StreamState.BROKEN, BatchFact.REPEATED): (StreamState.BROKEN, Verdict.DROP),
    (StreamState.BROKEN, BatchFact.GAP): (StreamState.BROKEN, Verdict.DROP),
    (StreamState.BROKEN, BatchFact.OTHER_BOOT): (StreamState.BROKEN, Verdict.DROP),
}


class BootWatch:
    """Watches one stream; the table above is all its knowledge."""

    def __init__(self) -> None:
        self.state = StreamState.OPENING
        self.boot: str | None = None
        self._number = 0

    def judge(self, boot: str, number: int) -> Verdict:
        """Returns what is to be done with a batch."""
        self.state, verdict = RULES[self.state, self._fact(boot, number)]
        if verdict is Verdict.TAKE:
            self.boot, self._number = boot, number
        return verdict

    def _fact(self, boot: str, number: int) -> BatchFact:
        if self.state is StreamState.OPENING:
            return BatchFact.FIRST if number == 1 else BatchFact.GAP
        if boot != self.boot:
            return BatchFact.OTHER_BOOT
        if number == self._number + 1:
            return BatchFact.NEXT
        return BatchFact.REPEATED if number <= self._number else BatchFact.GAP


class EpochBook:
    """The server's epochs of one engine, over all its streams: one for each start of the engine that it has met."""

    def __init__(self) -> None:
        self._epoch = 0
        self._last: tuple[str, int] | None = None

    @property
    def epoch(self) -> int:
        """The newest; 0 before the first."""
        return self._epoch

    def greet(self, boot: str, engine_epoch: int) -> int:
        """Returns the epoch of an engine that is ready. Met again through a new stream, it keeps the one it had."""
        if self._last != (boot, engine_epoch):
            self._last = (boot, engine_epoch)
            self._epoch += 1
        return self._epoch

    def is_current(self, boot: str, engine_epoch: int) -> bool:
        """Whether outputs of that engine are those of the newest epoch."""
        return self._last == (boot, engine_epoch)
