"""Which errors of a request cross from an engine actor to the server, and come out as what they were.

Decides by a table. What is not in it is our own fault and says nothing more. Does not know: bytes, sessions.
"""

from tidegate.engines.ray.wire import RequestFailed, WireLimit
from tidegate.errors import (
    CapacityFault,
    ContextLengthExceeded,
    EngineLost,
    EngineRefused,
    EngineUnavailable,
    GrammarTooComplex,
    InternalError,
    InvalidSchema,
    InvalidValue,
    LimitFact,
    ServeError,
    UnsupportedParameter,
    UnsupportedSchema,
)

CARRIED: dict[str, type[ServeError]] = {
    kind.__name__: kind
    for kind in (
        ContextLengthExceeded,
        EngineLost,
        EngineRefused,
        EngineUnavailable,
        GrammarTooComplex,
        InvalidSchema,
        InvalidValue,
        UnsupportedParameter,
        UnsupportedSchema,
    )
}
_OURS = "An internal error."


def to_wire(request_id: str, error: BaseException) -> RequestFailed:
    """Returns what the server is told of a request's failure."""
    kind = type(error).__name__
    if not isinstance(error, ServeError) or CARRIED.get(kind) is not type(error):
        return RequestFailed(request_id, InternalError.__name__, _OURS)
    limit = error.limit
    return RequestFailed(
        request_id,
        kind,
        error.message,
        error.param,
        None if limit is None else WireLimit(limit.name, limit.value, limit.actual, limit.scope),
        error.retry_after_s if isinstance(error, CapacityFault) else 1,
    )


def from_wire(failed: RequestFailed) -> ServeError:
    """Returns the error that was carried; InternalError for one that we do not know."""
    kind = CARRIED.get(failed.kind)
    if kind is None:
        return InternalError(_OURS)
    given = failed.limit
    limit = None if given is None else LimitFact(given.name, given.value, given.actual, given.scope)
    if issubclass(kind, CapacityFault):
        return kind(failed.message, retry_after_s=failed.retry_after_s, limit=limit)
    return kind(failed.message, param=failed.param, limit=limit)
