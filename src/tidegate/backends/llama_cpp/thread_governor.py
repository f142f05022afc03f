"""Decides how many threads a forward pass uses, from how much of the time they really ran.

llama.cpp's threads wait for each other some hundred times in a pass, spinning. Alone on their cores that is the fastest
way. When another process takes a core away, all wait for the thread that lost it, and burn the rest: on two cores with
other work, two threads were measured 10 to 30 times slower than one. So:
- Presence, the CPU time of a stretch of passes over its wall time and threads, tells which case it is: near 1.0 when
  nobody disturbs.
- Below `LOW_PRESENCE` a quarter of the threads goes, at least one. After `FIRST_PATIENCE_S` in peace one more is tried;
  where that fails at once, patience doubles.

Does not know clocks (times are handed in), devices, or llama.cpp. Measures stretches, not single passes: a pass of a
small model is shorter than the tick of some CPU clocks.
"""

STRETCH_S = 0.1
LOW_PRESENCE = 0.75
FIRST_PATIENCE_S = 2.0
MAX_PATIENCE_S = 60.0


class ThreadGovernor:
    """Starts with all threads. `feed` after each pass; `num_threads` is for the next one."""

    def __init__(self, max_threads: int) -> None:
        self.num_threads = max_threads
        self.max_threads = max_threads
        self._wall_s = 0.0
        self._cpu_s = 0.0
        self._peace_s = 0.0
        self._patience_s = FIRST_PATIENCE_S
        self._is_trial = False

    def feed(self, wall_s: float, cpu_s: float) -> bool:
        """Takes the duration and the CPU time of a pass, in seconds. Returns whether `num_threads` changed."""
        self._wall_s += wall_s
        self._cpu_s += cpu_s
        if self._wall_s < STRETCH_S:
            return False
        presence = self._cpu_s / (self._wall_s * self.num_threads)
        stretch_s, self._wall_s, self._cpu_s = self._wall_s, 0.0, 0.0
        if presence < LOW_PRESENCE:
            return self._lower()
        return self._rest(stretch_s)

    def _lower(self) -> bool:
        if self._is_trial:
            self._patience_s = min(2 * self._patience_s, MAX_PATIENCE_S)
        self._peace_s, self._is_trial = 0.0, False
        if self.num_threads == 1:
            return False
        self.num_threads -= max(1, self.num_threads // 4)
        return True

    def _rest(self, stretch_s: float) -> bool:
        self._peace_s += stretch_s
        if self._is_trial and self._peace_s >= FIRST_PATIENCE_S:
            # The thread that was tried has held: what comes next starts afresh.
            self._is_trial, self._patience_s = False, FIRST_PATIENCE_S
        if self.num_threads == self.max_threads or self._peace_s < self._patience_s:
            return False
        self.num_threads += 1
        self._peace_s, self._is_trial = 0.0, True
        return True
