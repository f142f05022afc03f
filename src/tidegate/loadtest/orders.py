"""Orders: what `tidegate bench` was told to do, and what that may cost. Pure."""

from dataclasses import dataclass

import msgspec

from tidegate.loadtest.arrivals import Arrival
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.session import Session
from tidegate.loadtest.workloads import Workload, make_session

COUNTED_SESSIONS = 1000
"""Made to see what a run costs; of more, the rest is taken to be like them."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Closed loop: `num_clients`, each of which asks again when it is answered. Open loop: `rate` sessions a second,
    whether or not earlier ones are answered, at most `max_in_flight` at a time.
    """

    num_clients: int = 1
    rate: float | None = None
    arrival: str = Arrival.POISSON.value
    max_in_flight: int = 512

    @property
    def is_open(self) -> bool:
        return self.rate is not None

    def describe(self) -> str:
        """Returns the load in words."""
        if self.rate is None:
            return "1 client" if self.num_clients == 1 else f"{self.num_clients} clients at once"
        how = "at random (Poisson)" if self.arrival == Arrival.POISSON.value else "evenly"
        return f"{self.rate:g} sessions a second, arriving {how}"


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """`num_sessions`: of one run on one server. `duration_s`: after it a run starts nothing new. `max_time_s` and
    `max_tokens`: of everything, warm-up included.
    """

    num_sessions: int
    num_runs: int = 3
    num_warm: int = 0
    duration_s: float | None = None
    timeout_s: float = 600.0
    max_time_s: float = 1800.0
    max_tokens: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Of one report."""

    workload: Workload
    load: Load
    bounds: Bounds

    def sessions_of(self, number: int) -> list[Session]:
        """Returns the sessions of a run. No two runs share one: what an earlier run left in a cache helps nobody."""
        first = number * self.bounds.num_sessions
        return [make_session(self.workload, index) for index in range(first, first + self.bounds.num_sessions)]

    def warm_sessions(self) -> list[Session]:
        """Returns the sessions that are not counted."""
        return [make_session(self.workload, -index) for index in range(1, self.bounds.num_warm + 1)]


@dataclass(frozen=True, slots=True)
class Cost:
    """At most: no answer is longer than it is allowed to be. `num_tokens` holds prompts and answers."""

    num_requests: int
    num_tokens: int

    def describe(self, bounds: Bounds, num_servers: int) -> str:
        """Returns the cost in words."""
        servers = f" to each of {num_servers} servers" if num_servers > 1 else ""
        requests = f"{self.num_requests // num_servers:,} requests{servers}"
        return (
            f"Costs at most {requests}, {self.num_tokens:,} tokens (prompts and answers) and "
            f"{bounds.max_time_s:g} s; Ctrl-C ends it and reports what was measured."
        )


def cost_of(orders: Orders, num_servers: int) -> Cost:
    """Returns what the orders cost at most."""
    bounds = orders.bounds
    num_made = min(bounds.num_sessions, COUNTED_SESSIONS)
    made = [make_session(orders.workload, index) for index in range(num_made)]
    scale = bounds.num_sessions / num_made * bounds.num_runs
    warm = orders.warm_sessions()
    num_requests = scale * sum(len(session.turns) for session in made) + sum(len(session.turns) for session in warm)
    num_tokens = scale * sum(session.planned_tokens for session in made)
    num_tokens += sum(session.planned_tokens for session in warm)
    return Cost(round(num_requests) * num_servers, round(num_tokens) * num_servers)


@dataclass(slots=True)
class Budget:
    """Tokens that may still be spent; prompts are counted as the server says, else as planned."""

    left: int

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def charge(self, sample: Sample, num_planned: int) -> None:
        """Takes off what a request used."""
        if sample.num_tokens or sample.is_done:
            self.left -= (sample.num_prompt_tokens or num_planned) + sample.num_tokens
