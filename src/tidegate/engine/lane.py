"""Lane: the engine that answers one call, and what it serves.

A call may have several prompts, and its answer names one revision: so all of them go down one lane.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.engine.port import Engine
from tidegate.inference.model_info import ModelInfo


@dataclass(frozen=True, slots=True)
class Lane:
    """`model` is what `engine` serves; None before it has ever said so."""

    engine: Engine
    model: ModelInfo | None


ChooseLane = Callable[[], Lane]


def only_lane(engine: Engine) -> ChooseLane:
    """Returns the choice where there is none."""
    return lambda: Lane(engine, engine.statistics().model)
