"""A pool of real engine cores in one process, without sockets, threads or time."""

from tidegate.engines.pool.pool import EnginePool, PoolRule
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import seeded_request


class PoolScene:
    """Engines `a`, `b`, ... behind one pool. Engines named in `down` are never ready until `connect`."""

    def __init__(self, num_engines: int, rule: PoolRule | None = None, *, down: str = "", others: str = "") -> None:
        """`others` names engines that serve another revision."""
        self.clock = ManualClock()
        self.pool = EnginePool(rule or PoolRule(), self.clock.now)
        poison = PoisonWatch()
        self.pairs: dict[str, EnginePair] = {}
        for name in "abcdefgh"[:num_engines]:
            make = other_core if name in others else simulated_core
            self.pairs[name] = EnginePair(make, self.clock, is_ready=name not in down, poison=poison)
            self.pool.join(name, self.pairs[name].engine)
        self.pool.members()

    def submit(self, request_id: str, **wishes: int) -> RecordingSink:
        sink = RecordingSink(wishes.get("num_choices", 1))
        self.pool.submit(seeded_request(request_id, **wishes), sink)
        return sink

    def step(self) -> None:
        """Lets every engine that lives make one step."""
        for pair in self.pairs.values():
            pair.step()

    def run(self) -> None:
        """Lets the engines work until nothing is open."""
        for _ in range(3000):
            if not self.pool.num_open:
                return
            self.step()
        raise AssertionError(f"{self.pool.num_open} requests are still open")

    def state(self, name: str) -> str:
        """Returns an engine's state by its word."""
        return next(one.state.value for one in self.pool.members() if one.name == name)

    def owed(self) -> dict[str, int]:
        """Returns the outstanding tokens of each engine."""
        return {one.name: one.num_tokens for one in self.pool.members()}

    def requests(self) -> dict[str, int]:
        """Returns how many requests each engine has."""
        return {one.name: one.num_requests for one in self.pool.members()}

    def check_rest(self) -> None:
        """Raises AssertionError unless nothing is open and every count is back at 0."""
        assert self.pool.num_open == 0
        for one in self.pool.members():
            assert (one.num_tokens, one.num_requests, one.num_sequences) == (0, 0, 0), one.name
        assert all(not pair.raised for pair in self.pairs.values())


def other_core() -> tuple[object, ModelInfo]:
    """As `simulated_core`, with other weights."""
    from msgspec.structs import replace

    core, model = simulated_core()
    return core, replace(model, weights_digest="0" * 8)
