"""The only module that reads time or entropy."""

import os
import time

from tidegate.ids import mint_id

_LIFE_CHARACTERS = 16


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def entropy(num_bytes: int) -> bytes:
    """Returns `num_bytes` unpredictable bytes from the operating system."""
    return os.urandom(num_bytes)


def mint_life() -> str:
    """Returns a name for one start of an engine that no other start has, on whatever machine."""
    return mint_id("life_", entropy(_LIFE_CHARACTERS))
