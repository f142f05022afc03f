"""The only module that reads time or entropy."""

import os
import time


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def entropy(num_bytes: int) -> bytes:
    """Returns `num_bytes` unpredictable bytes from the operating system."""
    return os.urandom(num_bytes)
