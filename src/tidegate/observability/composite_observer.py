"""CompositeObserver: one fact to several observers, none of which can hurt a request or another observer."""

from collections.abc import Callable, Sequence

from tidegate.observability.observer import EngineChanged, GrammarChecked, NullObserver, Observer, RequestEnded


class CompositeObserver:
    """Passes every fact on, in order. An observer's exception ends here and is counted in `num_failures`."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        # The token path calls only those that listen.
        self._token_listeners = tuple(observer.tokens_delivered for observer in observers if _hears_tokens(observer))
        self.num_failures = 0

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:  # an observer's bug must not become the request's
                self.num_failures += 1

    def request_received(self, route: str, num_retries: int = 0) -> None:
        self._each(lambda observer: observer.request_received(route, num_retries))

    def request_refused(self, route: str, status: int, code: str) -> None:
        self._each(lambda observer: observer.request_refused(route, status, code))

    def request_ended(self, facts: RequestEnded) -> None:
        self._each(lambda observer: observer.request_ended(facts))

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        for listener in self._token_listeners:
            try:
                listener(num_tokens, gap_s)
            except Exception:  # as above
                self.num_failures += 1

    def claim_answered(self, outcome: str) -> None:
        self._each(lambda observer: observer.claim_answered(outcome))

    def claim_ended(self, outcome: str) -> None:
        self._each(lambda observer: observer.claim_ended(outcome))

    def grammar_checked(self, facts: GrammarChecked) -> None:
        self._each(lambda observer: observer.grammar_checked(facts))

    def engine_changed(self, facts: EngineChanged) -> None:
        self._each(lambda observer: observer.engine_changed(facts))

    def http_response(self, route: str, method: str, status: int) -> None:
        self._each(lambda observer: observer.http_response(route, method, status))


def _hears_tokens(observer: Observer) -> bool:
    return getattr(type(observer), "tokens_delivered", None) is not NullObserver.tokens_delivered
