"""Surroundings: what all requests of one served model share."""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.clock import Clock
from tidegate.engine.lane import ChooseLane, Lane, only_lane
from tidegate.engine.port import Engine
from tidegate.lifecycle.drain import Drain
from tidegate.observability.observer import Observer
from tidegate.serving.gate import Gate


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all drivers of a served model share."""

    engine: Engine
    gate: Gate
    drain: Drain
    observer: Observer
    clock: Clock
    unsent_bytes: int
    """Text that may wait for a reader before the engine is held."""
    on_fault: Callable[[BaseException], None]
    """Hears of faults of ours that were contained to one request."""
    choose_lane: ChooseLane | None = None
    """Where there are several engines: says which of them answer a call."""

    def lane(self) -> Lane:
        """Returns what shall answer one call."""
        return only_lane(self.engine)() if self.choose_lane is None else self.choose_lane()
