"""HangWatch: when an engine that still has its connection counts as hung.

Decides by ticks, not by a clock: at each tick a ping goes out, and so many ticks in a row without any message from the
engine mean that it hangs. A pause of our own process is one tick, and never costs an engine its life. Does not know:
what a tick lasts, pings, processes.
"""


class HangWatch:
    """Fed once a tick with the number of messages heard so far."""

    def __init__(self, max_silent_ticks: int) -> None:
        self._max_silent_ticks = max_silent_ticks
        self._num_heard: int | None = None
        self._num_silent_ticks = 0

    def tick(self, num_heard: int) -> bool:
        """Returns True when the engine hangs."""
        if num_heard != self._num_heard:
            self._num_heard = num_heard
            self._num_silent_ticks = 0
            return False
        self._num_silent_ticks += 1
        return self._num_silent_ticks >= self._max_silent_ticks
