"""Everything that can go wrong, ordered by who must act. Carries facts; knows no HTTP.

ServeError
  ClientFault                  the request cannot succeed as sent
    InvalidRequest             InvalidJson, InvalidValue, MissingField, UnknownParameter,
                               ContextLengthExceeded, InvalidTemplateInput,
                               InvalidSchema, UnsupportedSchema, GrammarTooComplex
    UnsupportedParameter       a valid field that this model or engine does not serve
    InvalidApiKey, ModelNotAllowed, RouteNotAllowed
    ModelNotFound, RouteNotFound, MethodNotAllowed
    SlowRequest, BodyTooLarge, UriTooLong, UnsupportedMediaType, HeadersTooLarge
    IdempotencyKeyReuse        the key names another operation
    DeadlineUnreachable        the caller's time is too short for what is asked
  CapacityFault                not now; a retry may help
    RateLimited                the caller's own limit
    IdempotencyKeyInUse        the first request of that name still runs
    QueueFull, NoCapacity, EngineUnavailable, ServerDraining
  ExecutionFault               accepted, then failed
    DeadlineExceeded, EngineLost, EngineRefused
  InternalError                an invariant of ours broke; never raised on purpose by input

`contract/error_table.py` maps each leaf to its status, type, code and retry advice (CONTRACT.md section 3).
A client that goes away is not an error but an event.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimitFact:
    """The limit that fired: its published name, its value, and what was asked for."""

    name: str
    value: int
    actual: int
    scope: str = "request"


class ServeError(Exception):
    """Base of the tree. `message` is shown to callers: no paths, no tracebacks, no other caller's data."""

    def __init__(self, message: str, *, param: str | None = None, limit: LimitFact | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.limit = limit


class ClientFault(ServeError):
    """The request cannot succeed as sent."""


class InvalidRequest(ClientFault):
    """A field or the body is malformed."""


class InvalidJson(InvalidRequest):
    """The body is not JSON, or not an object."""


class InvalidValue(InvalidRequest):
    """A field has the wrong type, or lies outside its range."""


class MissingField(InvalidRequest):
    """A required field is absent."""


class UnknownParameter(InvalidRequest):
    """A field that nobody knows, under the policy `reject`."""


class ContextLengthExceeded(InvalidRequest):
    """Prompt and requested output do not fit the context."""


class InvalidTemplateInput(InvalidRequest):
    """The chat template refused these messages."""


class InvalidSchema(InvalidRequest):
    """A schema or grammar that nobody could compile, or that nothing satisfies."""


class UnsupportedSchema(InvalidRequest):
    """A valid schema or grammar that says something which is not enforced exactly."""


class GrammarTooComplex(InvalidRequest):
    """A schema or grammar beyond a bound of size, depth, combinations or time of compilation."""


class UnsupportedParameter(ClientFault):
    """A valid field that this model or engine does not serve."""


class InvalidApiKey(ClientFault):
    """No key, or a wrong one."""


class ModelNotAllowed(ClientFault):
    """The key may not use this model."""


class RouteNotAllowed(ClientFault):
    """The key may not use this route."""


class ModelNotFound(ClientFault):
    """No served model has this name."""


class RouteNotFound(ClientFault):
    """No route has this path."""


class MethodNotAllowed(ClientFault):
    """The route exists for other methods; `allow` lists them."""

    def __init__(self, message: str, *, allow: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allow = allow


class SlowRequest(ClientFault):
    """The body did not arrive in time."""


class BodyTooLarge(ClientFault):
    """The body is longer than `body_bytes`."""


class UriTooLong(ClientFault):
    """The path and query are too long."""


class UnsupportedMediaType(ClientFault):
    """The body is not declared as JSON."""


class HeadersTooLarge(ClientFault):
    """The header block is too large."""


class IdempotencyKeyReuse(ClientFault):
    """The idempotency key was used for another request."""


class DeadlineUnreachable(ClientFault):
    """The first token cannot come within the caller's time: refused before any work."""


class CapacityFault(ServeError):
    """Not now; a retry may help. `retry_after_s` is a whole number from 1 to 120."""

    def __init__(self, message: str, *, retry_after_s: int = 1, limit: LimitFact | None = None) -> None:
        super().__init__(message, limit=limit)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class RateFacts:
    """What a key with quotas has left; None where the key has no such quota. `reset` counts seconds to a full quota."""

    limit_requests: int | None = None
    remaining_requests: int | None = None
    reset_requests_s: float | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset_tokens_s: float | None = None


class RateLimited(CapacityFault):
    """The key's own quota is used up. `limit.name` is `concurrency`, `requests_per_minute` or `tokens_per_minute`."""

    def __init__(
        self, message: str, *, retry_after_s: int = 1, limit: LimitFact | None = None, rate: RateFacts | None = None
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s, limit=limit)
        self.rate = rate


class IdempotencyKeyInUse(CapacityFault):
    """The first request with this idempotency key has not ended."""


class QueueFull(CapacityFault):
    """The admission queue has no room."""


class NoCapacity(CapacityFault):
    """The request waited longer than the queue deadline."""


class EngineUnavailable(CapacityFault):
    """The engine is starting, restarting or gone."""


class ServerDraining(CapacityFault):
    """The server is shutting down."""


class ExecutionFault(ServeError):
    """Accepted, then failed."""


class DeadlineExceeded(ExecutionFault):
    """The caller's time ran out."""


class EngineLost(ExecutionFault):
    """The engine process died with this request in it."""


class EngineRefused(ExecutionFault):
    """The engine could not carry out this request."""


class InternalError(ServeError):
    """An invariant of ours broke."""
