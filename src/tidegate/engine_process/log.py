"""Log lines of the engine process: one JSON object a line on standard error, which its parent reads."""

import os
import sys

import msgspec

from tidegate.clock import Clock

Fact = str | int | float | bool | None


class JsonLog:
    """Writes facts, never prompts or tokens. A failed write is not an error: nobody is listening."""

    def __init__(self, clock: Clock, epoch: int) -> None:
        self._clock = clock
        self._epoch = epoch

    def write(self, level: str, event: str, **facts: Fact) -> None:
        """Writes one line. `event` is a fixed phrase; whatever varies is a fact."""
        line = msgspec.json.encode(
            {
                "at": round(self._clock.wall(), 3),
                "level": level,
                "event": event,
                "source": "engine",
                "process_id": os.getpid(),
                "epoch": self._epoch,
                **facts,
            }
        )
        try:
            sys.stderr.buffer.write(line + b"\n")
            sys.stderr.buffer.flush()
        except (OSError, ValueError):
            return
