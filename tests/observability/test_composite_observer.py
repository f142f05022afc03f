"""CompositeObserver: every fact to everyone."""

from tidegate.observability.composite_observer import CompositeObserver
from tidegate.observability.observer import EngineChanged, NullObserver, RequestEnded

ENDED = RequestEnded(
    request_id="r",
    wire_id="w",
    route="/x",
    model=None,
    outcome="error",
    status=500,
    duration_s=0.1,
    code="internal_error",
)


class Failing(NullObserver):
    def request_received(self, route: str, num_retries: int = 0) -> None:
        raise RuntimeError

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        raise RuntimeError


class Recording(NullObserver):
    def __init__(self) -> None:
        self.facts: list[object] = []

    def request_received(self, route: str, num_retries: int = 0) -> None:
        self.facts.append((route, num_retries))

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.facts.append((route, status, code))

    def request_ended(self, facts: RequestEnded) -> None:
        self.facts.append(facts)

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        self.facts.append((num_tokens, gap_s))

    def engine_changed(self, facts: EngineChanged) -> None:
        self.facts.append(facts)

    def http_response(self, route: str, method: str, status: int) -> None:
        self.facts.append((route, method, status))


def test_every_observer_hears_every_fact_whatever_another_does() -> None:
    recording = Recording()
    both = CompositeObserver([Failing(), NullObserver(), recording])
    changed = EngineChanged(is_ready=True, epoch=1, num_restarts=0)
    both.request_received("/x", 1)
    both.request_refused("/x", 400, "invalid_value")
    both.request_ended(ENDED)
    both.tokens_delivered(2, 0.5)
    both.engine_changed(changed)
    both.http_response("/x", "GET", 200)
    assert recording.facts == [("/x", 1), ("/x", 400, "invalid_value"), ENDED, (2, 0.5), changed, ("/x", "GET", 200)]
    assert both.num_failures == 2
