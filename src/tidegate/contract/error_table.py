"""The one mapping from errors to the wire: status, type, code, retry advice (CONTRACT.md section 3).

Every leaf of `errors.py` has exactly one row. What is no ServeError at all is our bug, and so is InternalError: both
are answered with a fixed sentence, so that no accident shows what it should not.
"""

from dataclasses import dataclass
from enum import Enum, auto

from msgspec import UNSET

from tidegate import errors
from tidegate.contract import headers
from tidegate.contract.codec import encode_json
from tidegate.contract.error_body import ErrorBody, ErrorObject, LimitBody
from tidegate.contract.rate_headers import rate_headers

MAX_MESSAGE_BYTES = 2048
MAX_PARAM_BYTES = 256
_INTERNAL_MESSAGE = "the server failed to carry out this request"


class Retry(Enum):
    """The advice that goes with an error."""

    NO = auto()
    """`X-Should-Retry: false`."""
    LATER = auto()
    """`Retry-After` as the error says, and `X-Should-Retry: true`."""
    IF_NOTHING_SENT = auto()
    """True where the caller has seen no output of this request, otherwise false."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    status: int
    type: str
    code: str
    retry: Retry = Retry.NO


_INVALID = "invalid_request_error"
_OVERLOADED = "overloaded_error"

ERROR_TABLE: dict[type[errors.ServeError], ErrorRow] = {
    errors.InvalidJson: ErrorRow(400, _INVALID, "invalid_json"),
    errors.InvalidValue: ErrorRow(400, _INVALID, "invalid_value"),
    errors.MissingField: ErrorRow(400, _INVALID, "missing_field"),
    errors.UnknownParameter: ErrorRow(400, _INVALID, "unknown_parameter"),
    errors.ContextLengthExceeded: ErrorRow(400, _INVALID, "context_length_exceeded"),
    errors.InvalidSchema: ErrorRow(400, _INVALID, "invalid_schema"),
    errors.UnsupportedSchema: ErrorRow(400, _INVALID, "unsupported_schema"),
    errors.GrammarTooComplex: ErrorRow(400, _INVALID, "grammar_too_complex"),
    errors.InvalidTemplateInput: ErrorRow(400, _INVALID, "invalid_template_input"),
    errors.UnsupportedParameter: ErrorRow(422, _INVALID, "unsupported_parameter"),
    errors.InvalidApiKey: ErrorRow(401, "authentication_error", "invalid_api_key"),
    errors.ModelNotAllowed: ErrorRow(403, "permission_error", "model_not_allowed"),
    errors.RouteNotAllowed: ErrorRow(403, "permission_error", "route_not_allowed"),
    errors.ModelNotFound: ErrorRow(404, _INVALID, "model_not_found"),
    errors.RouteNotFound: ErrorRow(404, _INVALID, "route_not_found"),
    errors.MethodNotAllowed: ErrorRow(405, _INVALID, "method_not_allowed"),
    errors.SlowRequest: ErrorRow(408, _INVALID, "slow_request"),
    errors.BodyTooLarge: ErrorRow(413, _INVALID, "body_too_large"),
    errors.UriTooLong: ErrorRow(414, _INVALID, "uri_too_long"),
    errors.UnsupportedMediaType: ErrorRow(415, _INVALID, "unsupported_media_type"),
    errors.HeadersTooLarge: ErrorRow(431, _INVALID, "headers_too_large"),
    errors.IdempotencyKeyInUse: ErrorRow(409, "idempotency_error", "idempotency_key_in_use", Retry.LATER),
    errors.IdempotencyKeyReuse: ErrorRow(422, "idempotency_error", "idempotency_key_reuse"),
    errors.RateLimited: ErrorRow(429, "rate_limit_error", "rate_limit_exceeded", Retry.LATER),
    errors.QueueFull: ErrorRow(429, "rate_limit_error", "queue_full", Retry.LATER),
    errors.NoCapacity: ErrorRow(503, _OVERLOADED, "no_capacity", Retry.LATER),
    errors.EngineUnavailable: ErrorRow(503, _OVERLOADED, "engine_unavailable", Retry.LATER),
    errors.ServerDraining: ErrorRow(503, _OVERLOADED, "server_draining", Retry.LATER),
    errors.DeadlineExceeded: ErrorRow(504, "timeout_error", "deadline_exceeded"),
    errors.DeadlineUnreachable: ErrorRow(504, "timeout_error", "deadline_unreachable"),
    errors.EngineLost: ErrorRow(502, "server_error", "engine_lost", Retry.IF_NOTHING_SENT),
    errors.EngineRefused: ErrorRow(502, "server_error", "engine_refused", Retry.IF_NOTHING_SENT),
    errors.InternalError: ErrorRow(500, "server_error", "internal_error"),
}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error as HTTP: `body` is also the data of a stream's error event, where status and headers are lost."""

    status: int
    code: str
    headers: list[tuple[str, str]]
    body: bytes


def row_of(error: BaseException) -> ErrorRow:
    """Returns the row of an error's nearest class in the table; of InternalError for everything else."""
    for cls in type(error).__mro__:
        if cls in ERROR_TABLE:
            return ERROR_TABLE[cls]
    return ERROR_TABLE[errors.InternalError]


def error_answer(error: BaseException, *, queue_full_status: int = 429, nothing_sent: bool = True) -> ErrorAnswer:
    """Returns what the caller gets for `error`. `queue_full_status` is the setting: 429 or 503."""
    row = row_of(error)
    status = queue_full_status if isinstance(error, errors.QueueFull) else row.status
    return ErrorAnswer(status, row.code, _headers(error, row, nothing_sent=nothing_sent), _body(error, row))


def _headers(error: BaseException, row: ErrorRow, *, nothing_sent: bool) -> list[tuple[str, str]]:
    advice = row.retry is Retry.LATER or (row.retry is Retry.IF_NOTHING_SENT and nothing_sent)
    answer = [(headers.CONTENT_TYPE, headers.JSON_TYPE), (headers.SHOULD_RETRY, "true" if advice else "false")]
    if isinstance(error, errors.CapacityFault):
        answer.append((headers.RETRY_AFTER, str(min(max(error.retry_after_s, 1), 120))))
    if isinstance(error, errors.RateLimited):
        answer += rate_headers(error.rate)
    if isinstance(error, errors.ServerDraining):
        answer.append((headers.CONNECTION, "close"))  # the next request is to find another server
    if isinstance(error, errors.InvalidApiKey):
        answer.append((headers.WWW_AUTHENTICATE, "Bearer"))
    if isinstance(error, errors.MethodNotAllowed):
        answer.append((headers.ALLOW, ", ".join(error.allow)))
    return answer


def _body(error: BaseException, row: ErrorRow) -> bytes:
    message, param, limit = _INTERNAL_MESSAGE, None, None
    if isinstance(error, errors.ServeError) and row.status != 500:
        message, param, limit = error.message, error.param, error.limit
    limit_body = (
        LimitBody(name=limit.name, value=limit.value, actual=limit.actual, scope=limit.scope) if limit else UNSET
    )
    error_object = ErrorObject(
        message=_bounded(message, MAX_MESSAGE_BYTES),
        type=row.type,
        param=_bounded(param, MAX_PARAM_BYTES) if param is not None else None,
        code=row.code,
        limit=limit_body,
    )
    return encode_json(ErrorBody(error=error_object))


def _bounded(text: str, max_bytes: int) -> str:
    """Returns at most `max_bytes` of UTF-8; what cannot be encoded is replaced."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
