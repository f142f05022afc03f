"""`Observer`: the port through which the HTTP half reports facts to metrics, logs and traces.

One typed method for each kind of fact. Implementations return at once, keep nothing unbounded, and never raise.
"""

from typing import Protocol

import msgspec

from tidegate.observability.traced_facts import TracedWork


class RequestEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Everything worth counting about one request to a route that takes a body, at its end.

    `outcome` is one word: the public finish reason of the first choice ("stop", "length", "tool_calls"), "read" for
    one of which nothing was to be generated, or what ended the request instead ("error", "client_gone", "slow_client",
    "deadline", "shutdown"); "replayed" for a recorded answer, which was no work. `status` is the HTTP status that was
    sent, None when none was; `code` is the public error code, None without an error. Durations are in seconds and count
    from receipt: `queue_s` to the engine's first work on it, `first_token_s` to its first token, `duration_s` to the
    end; None when that never happened. `key_name` is the
    configured name of the caller's key, never the key.
    """

    request_id: str
    wire_id: str
    route: str
    model: str | None
    outcome: str
    status: int | None
    duration_s: float
    code: str | None = None
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_completion_tokens: int = 0
    queue_s: float | None = None
    first_token_s: float | None = None
    is_stream: bool = False
    key_name: str | None = None
    num_retries: int = 0
    """The client's own count of earlier attempts (`x-stainless-retry-count`)."""
    details: TracedWork | None = None
    """For spans alone; None where the request is not recorded."""


class EngineChanged(msgspec.Struct, frozen=True, kw_only=True):
    """An engine became ready or went away. `reason` is for people: an exit status, a message of the engine. `engine`
    names it where there are several.
    """

    is_ready: bool
    epoch: int
    num_restarts: int
    process_id: int | None = None
    reason: str | None = None
    engine: str | None = None


class GrammarChecked(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wanted to know whether a constraint can be enforced, or a compilation ended.

    `kind` is that of its source. `outcome`: "hit" (known), "joined" (being compiled for another); or, with the time
    that it took, how a compilation ended: "compiled", "refused", "timeout" (beyond the limit).
    """

    kind: str
    outcome: str
    compile_s: float | None = None


class Observer(Protocol):
    """Where facts go. Called on the event loop."""

    def request_received(self, route: str, num_retries: int = 0) -> None:
        """A request to a generating or tokenizing route arrived."""
        ...

    def request_refused(self, route: str, status: int, code: str) -> None:
        """A request was answered with an error before any engine work."""
        ...

    def request_ended(self, facts: RequestEnded) -> None:
        """A request that the engine knew reached its end. Exactly once for each."""
        ...

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        """Tokens of one choice came, `gap_s` after that choice's previous ones; None for its first.

        Called for every streamed token: cheap above all.
        """
        ...

    def claim_answered(self, outcome: str) -> None:
        """A request named by an idempotency key was looked up.

        "fresh" (it runs), "replayed", "in_use", "reused", "full" or "unavailable".
        """
        ...

    def claim_ended(self, outcome: str) -> None:
        """A fresh one has ended.

        "recorded", "released" (a retry runs), "too_large", "not_recorded" (the store failed) or "superseded".
        """
        ...

    def grammar_checked(self, facts: GrammarChecked) -> None:
        """The server looked at a schema or grammar, before a request was admitted."""
        ...

    def engine_changed(self, facts: EngineChanged) -> None:
        """The engine became ready or went away."""
        ...

    def http_response(self, route: str, method: str, status: int) -> None:
        """A status was sent, on any route of any listener. `route` is a pattern of ours, never a raw path."""
        ...


class NullObserver:
    """Takes every fact and keeps none. A base for observers that care about a few kinds."""

    def request_received(self, route: str, num_retries: int = 0) -> None:
        pass

    def request_refused(self, route: str, status: int, code: str) -> None:
        pass

    def request_ended(self, facts: RequestEnded) -> None:
        pass

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        pass

    def claim_answered(self, outcome: str) -> None:
        pass

    def claim_ended(self, outcome: str) -> None:
        pass

    def grammar_checked(self, facts: GrammarChecked) -> None:
        pass

    def engine_changed(self, facts: EngineChanged) -> None:
        pass

    def http_response(self, route: str, method: str, status: int) -> None:
        pass
