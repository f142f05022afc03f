"""What HTTP needs from the rest of the server: the service for callers, and the admin view for operators."""

from typing import Protocol

from tidegate.contract.admin import AddBody, EngineAct, RollBody
from tidegate.contract.admin_query import RequestFilter
from tidegate.contract.health import DegradedEngine
from tidegate.errors import ServeError
from tidegate.lifecycle.principal import Principal
from tidegate.serving.call import Call
from tidegate.serving.gate import KeySlot
from tidegate.serving.reply import Reply, WholeReply


class Service(Protocol):
    """Answers calls. Every method raises ServeError for what fails before the status is known.

    Cancelling the task that runs one of the asynchronous methods says that the client has gone: whatever the engine
    holds for the call is aborted before the cancellation leaves the method.
    """

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot:
        """Counts a request to `route` against its key's concurrency, before its body is read. Raises RateLimited."""
        ...

    async def chat(self, call: Call) -> Reply: ...

    async def completion(self, call: Call) -> Reply: ...

    async def embeddings(self, call: Call) -> Reply: ...

    async def score(self, call: Call) -> Reply: ...

    async def rerank(self, call: Call) -> Reply: ...

    async def classify(self, call: Call) -> Reply: ...

    async def tokenize(self, call: Call) -> Reply: ...

    async def detokenize(self, call: Call) -> Reply: ...

    def models(self, principal: Principal) -> WholeReply:
        """Lists what this caller may use."""
        ...

    def model(self, model_id: str, principal: Principal) -> WholeReply:
        """Raises ModelNotFound and ModelNotAllowed."""
        ...

    def contract(self, principal: Principal) -> WholeReply:
        """What the server promises to whoever asks."""
        ...

    def is_ready(self) -> bool:
        """Whether a generating request would be taken now."""
        ...


class Admin(Protocol):
    """The operator's view. Bytes are JSON bodies."""

    async def live_requests(self, wanted: RequestFilter) -> bytes: ...

    async def engine(self) -> bytes: ...

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """Returns the content type and the exposition that suit the `Accept` header."""
        ...

    async def obstacle(self) -> ServeError | None:
        """Returns why no requests are taken now, in words for operators; None while they are."""
        ...

    async def degraded(self) -> list[DegradedEngine]:
        """Returns the engines that get no requests, or few, and why."""
        ...

    def is_alive(self) -> bool: ...


class Operator(Protocol):
    """What an operator can do to the server. Every method raises ServeError when it cannot be done."""

    async def drain(self, timeout_s: float | None) -> WholeReply:
        """Begins the end of the server, as SIGTERM does; running requests have `timeout_s`. Returns at once."""
        ...

    async def abort(self, request_id: str) -> WholeReply:
        """Ends one live request with an error to its client. Raises RouteNotFound for an id that is not live."""
        ...

    async def flush_cache(self) -> WholeReply:
        """Drops what the engine keeps for reuse. Raises EngineUnavailable."""
        ...

    async def restart_engine(self, wait_s: float) -> WholeReply:
        """Ends the engine process and starts another; waits at most `wait_s` for it to be ready.

        Of several engines one after the other.
        """
        ...

    async def act_on_engine(self, name: str, act: EngineAct, wait_s: float) -> WholeReply:
        """Does something to one engine. Raises RouteNotFound for a name that none has, and UnsupportedParameter."""
        ...

    async def add_engine(self, body: AddBody) -> WholeReply:
        """Starts one more engine of a model. Raises RouteNotFound for an unknown model, and UnsupportedParameter."""
        ...

    async def roll_engines(self, body: RollBody) -> WholeReply:
        """Restarts engines one after the other without a cut stream. Raises as `add_engine`, and EngineUnavailable."""
        ...

    async def stop_roll(self) -> WholeReply:
        """Ends the roll that is under way; harmless without one."""
        ...

    def roll_told(self) -> WholeReply:
        """Returns how far the last roll is."""
        ...
