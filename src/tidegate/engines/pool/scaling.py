"""Scaling: when a pool gets one more engine, and when one of them retires.

Decides from the prompt tokens that wait for their first output, for each engine, and from the rows in use:

- more, when more wait than `up_tokens` for each engine that serves; at once, while there are fewer than `least`;
- fewer, when the engines that would remain had no more than `down_tokens` each waiting, and `ROOM` of their rows held
  all that runs; and only while every engine serves: one that is away may come back.

Both must have been so for their wait without a break, counted anew after each act, and one act ends before the next
begins. As `down_tokens` is no more than `up_tokens`, and the one is held against the engines that would remain, what
waits the same never asks for more after it has asked for fewer, nor the other way round. A queue that is there only
while engines are too few would: each retirement that demand takes back doubles the wait before the next one, up to
`MAX_PATIENCE` times. Demand that returns while an engine retires keeps that engine. Starts that fail are tried again
after waits that double. The acts are a table. Time is an argument. Does not know engines: which one retires is somebody
else's choice.
"""

from dataclasses import dataclass
from enum import Enum

ROOM = 0.75
"""Part of the rows of the engines that remain that may be in use when one retires."""
MAX_PATIENCE = 64
MAX_REST_S = 600.0
"""Longest wait after starts that failed."""


class ScalePhase(Enum):
    STEADY = "steady"
    ADDING = "adding"
    RETIRING = "retiring"


class Want(Enum):
    MORE = "more"
    FEWER = "fewer"


class ScaleAct(Enum):
    ADD = "add"
    RETIRE = "retire"
    """Of the engines that serve, one."""
    RETURN = "return"
    """Of the engine that is retiring."""


SCALE: dict[ScalePhase, dict[Want, tuple[ScaleAct, ScalePhase]]] = {
    ScalePhase.STEADY: {
        Want.MORE: (ScaleAct.ADD, ScalePhase.ADDING),
        Want.FEWER: (ScaleAct.RETIRE, ScalePhase.RETIRING),
    },
    ScalePhase.ADDING: {},
    ScalePhase.RETIRING: {Want.MORE: (ScaleAct.RETURN, ScalePhase.STEADY)},
}
"""What is done in which phase; a want without a row waits until the act under way has ended."""


_UNDER_WAY = {act: phase for row in SCALE.values() for act, phase in row.values()}


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """Waits are seconds, tokens are for each engine."""

    least: int
    most: int
    up_tokens: int = 4096
    down_tokens: int = 512
    up_wait_s: float = 10.0
    down_wait_s: float = 300.0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or not 0 <= self.down_tokens <= self.up_tokens:
            raise ValueError(f"scale rule out of range: {self}")
        if self.up_wait_s < 0 or self.down_wait_s < 0:
            raise ValueError(f"scale rule out of range: {self}")


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """`num_engines` are in the pool and not retiring, whether they are well or not; `num_serving` of them get requests,
    and have `num_rows` together. `num_queued_tokens` are of prompts without output; `num_sequences` run.
    """

    num_engines: int
    num_serving: int
    num_rows: int
    num_queued_tokens: int
    num_sequences: int


class Scaling:
    """Ask `decide` again and again; tell it the end of each act."""

    def __init__(self, rule: ScaleRule) -> None:
        self.rule = rule
        self._phase = ScalePhase.STEADY
        self._want: Want | None = None
        self._since = 0.0
        self._num_failed = 0
        self._rest_until = 0.0
        self._patience = 1
        self._retired_at: float | None = None

    @property
    def phase(self) -> ScalePhase:
        return self._phase

    def decide(self, load: PoolLoad, now: float) -> ScaleAct | None:
        """Returns what is to be done now. Whoever does it says when it has ended; a RETURN has ended at once."""
        want = wanted(load, self.rule)
        if want is not self._want:
            self._want, self._since = want, now
        if want is None or now - self._since < self._wait_s(want, load):
            return None
        if want is Want.MORE and now < self._rest_until:
            return None
        row = SCALE[self._phase].get(want)
        if row is None:
            return None
        act, self._phase = row
        self._want = None
        self._learn(act, now)
        return act

    def note_done(self, act: ScaleAct) -> None:
        """An act has ended: the engine serves, or has gone, or was kept. Harmless for one that was recalled."""
        if self._phase is not _UNDER_WAY[act]:
            return
        if act is ScaleAct.ADD:
            self._num_failed = 0
        self._end()

    def note_failed(self, now: float) -> None:
        """The engine that was to be added did not start, and is gone again."""
        rest_s = max(1.0, self.rule.up_wait_s) * 2.0 ** min(self._num_failed, 60)
        self._num_failed += 1
        self._rest_until = now + min(MAX_REST_S, rest_s)
        self._end()

    def _learn(self, act: ScaleAct, now: float) -> None:
        """A retirement that was soon taken back came too early."""
        if act is ScaleAct.RETIRE:
            self._retired_at = now
            return
        if self._retired_at is not None:
            was_early = now - self._retired_at <= self.rule.down_wait_s * self._patience
            self._patience = min(MAX_PATIENCE, 2 * self._patience) if was_early else 1
            self._retired_at = None

    def _end(self) -> None:
        self._phase = ScalePhase.STEADY
        self._want = None

    def _wait_s(self, want: Want, load: PoolLoad) -> float:
        if want is Want.FEWER:
            return self.rule.down_wait_s * self._patience
        return 0.0 if load.num_engines < self.rule.least else self.rule.up_wait_s


def wanted(load: PoolLoad, rule: ScaleRule) -> Want | None:
    """Returns what the load of this moment asks for, whatever was done before."""
    if load.num_engines < rule.least:
        return Want.MORE
    if load.num_engines > rule.most:
        return Want.FEWER
    if load.num_engines < rule.most and load.num_queued_tokens > rule.up_tokens * max(1, load.num_serving):
        return Want.MORE
    num_left = load.num_serving - 1
    if load.num_engines == rule.least or load.num_serving < load.num_engines or num_left < 1:
        return None
    has_room = load.num_sequences * load.num_serving <= ROOM * load.num_rows * num_left
    return Want.FEWER if has_room and load.num_queued_tokens <= rule.down_tokens * num_left else None
