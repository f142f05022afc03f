"""HangWatch: when an engine that still has its connection counts as hung.

Decides by ticks, not by a clock: at each tick a ping goes out and the answers so far are looked at. A pause of our own
process is one tick, and never costs an engine its life. Three counts of ticks in a row end in a verdict:

- STUCK: no message, and the engine's process burns no processor time: it is blocked or stopped.
- BUSY: no message, though it burns time. One thread steps and answers, so a long prefill is silent as well: it gets
  `BUSY_FACTOR` times the patience. Where the processor time cannot be known, silence counts as STUCK.
- IDLE: it answers, has sequences that could run, and makes no step. Answers to pings do not help it, nor do
  heartbeats to clients. Sequences whose readers are behind do not count: there is nothing to do for them.

Does not know: what a tick lasts, pings, processes.
"""

from dataclasses import dataclass
from enum import Enum

BUSY_FACTOR = 5
"""How much more patience a silent engine gets while it computes."""


class Hang(Enum):
    """What the verdict rests on; the value is for people."""

    STUCK = "it was silent and did not compute"
    BUSY = "it computed without an end"
    IDLE = "it had work and made no step"


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of an engine at a tick. All but `has_work` are counts that only grow."""

    num_heard: int
    """Messages from the engine."""
    num_steps: int
    has_work: bool
    cpu_s: float | None = None
    """Processor time of its process; None where that cannot be known."""


class HangWatch:
    """Fed once a tick; `patience` is a number of ticks."""

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._last: Signs | None = None
        self._num_silent = 0
        self._num_stuck = 0
        self._num_idle = 0

    def tick(self, signs: Signs) -> Hang | None:
        """Returns why the engine counts as hung; None while it does not."""
        last, self._last = self._last, signs
        if last is None:
            return None
        if signs.num_heard != last.num_heard:
            self._num_silent = self._num_stuck = 0
            is_idle = signs.has_work and last.has_work and signs.num_steps == last.num_steps
            self._num_idle = self._num_idle + 1 if is_idle else 0
        else:
            self._num_silent += 1
            self._num_stuck = 0 if _has_computed(last, signs) else self._num_stuck + 1
        if self._num_stuck >= self._patience:
            return Hang.STUCK
        if self._num_silent >= self._patience * BUSY_FACTOR:
            return Hang.BUSY
        return Hang.IDLE if self._num_idle >= self._patience else None


def _has_computed(last: Signs, signs: Signs) -> bool:
    return last.cpu_s is not None and signs.cpu_s is not None and signs.cpu_s > last.cpu_s
