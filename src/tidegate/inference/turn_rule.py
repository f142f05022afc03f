"""When a request's turn comes among others that wait: by arrival, and by how much its priority moves that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnRule:
    """A request that comes at `t` with priority `p` stands in line as if it had come, with 0, at `t + p x step`.

    So lower priority values go first, among requests of about one time, and none is passed for ever: who came more than
    `(p - q) x step` later does not pass it, however urgent its own priority `q`. Places never change while requests
    wait, so order needs no clock. `priority_step_s` in seconds; None: priorities do not count, first come, first
    served.
    """

    priority_step_s: float | None = 1.0

    def place(self, arrived_at: float, priority: int) -> float:
        """Returns the place in line: the least goes first."""
        if self.priority_step_s is None:
            return arrived_at
        return arrived_at + priority * self.priority_step_s

    def level(self, priority: int) -> int:
        """Returns the priority under which a request is kept: one for all where priorities do not count."""
        return 0 if self.priority_step_s is None else priority


BY_PRIORITY = TurnRule()
