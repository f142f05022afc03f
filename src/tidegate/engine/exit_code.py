"""How an engine process ends, as its parent sees it."""

from enum import IntEnum


class EngineExit(IntEnum):
    """Exit codes of the engine process. A negative code, as always, is the signal that killed it."""

    CLEAN = 0
    """It was told to stop, or its parent is gone."""
    USAGE = 2
    """Bad arguments, options or runtime folder; starting it again with the same ones cannot help."""
    START_FAILED = 3
    """The model or the backend could not be loaded."""
    BACKEND_FAILED = 4
    """A forward pass failed; EngineFault was sent."""
    INTERNAL = 5
    """An invariant of ours broke; EngineFault was sent."""
