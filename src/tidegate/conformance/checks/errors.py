"""Whether an error is told so that a client can act on it."""

import re
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.status import has_status
from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at

MAX_MESSAGE_BYTES = 2048
MAX_QUOTED = 64
INTERNALS = {
    "a traceback": re.compile(r"Traceback \(most recent call last\)"),
    "a line of a source file": re.compile(r"File \"[^\"]+\", line \d+|\b\w+\.(?:py|rs|cpp|go|ts):\d+"),
    "a path of the server's disk": re.compile(r"(?:/(?:usr|home|opt|root|app|workspace|site-packages)/[\w./-]+)"),
    "the address of an object": re.compile(r"\bat 0x[0-9a-fA-F]{6,}|\bobject at 0x"),
    "the source of a lambda or class": re.compile(r"<(?:class|function|bound method) [^>]+>"),
}


def has_error_object(exchange: Exchange) -> Iterator[Fault]:
    """The body is `{"error": {...}}` with message and type, and a param of its type where there is one. Codes that are
    numbers and members that are missing are other checks' matter (`has_text_code`, `has_nullable_members`). An answer
    of status 2xx has no error and passes.
    """
    if _is_success(exchange) or exchange.status is None:
        return
    error = at(exchange.json, "error")
    if not isinstance(error, dict):
        yield Fault(f"the body has no error object: {_beginning(exchange)}")
        return
    for name in ("message", "type"):
        if not isinstance(found := error.get(name, MISSING), str) or not found:
            yield Fault(f"error.{name} is {found!r}, expected a text")
    if not isinstance(error.get("param"), str | None):
        yield Fault(f"error.param is {error['param']!r}, expected a text or null")


def has_nullable_members(exchange: Exchange) -> Iterator[Fault]:
    """`error.param` and `error.code` are there, null where there is nothing to say."""
    error = at(exchange.json, "error")
    for name in ("param", "code") if isinstance(error, dict) and not _is_success(exchange) else ():
        if name not in error:
            yield Fault(f"error.{name} is missing; it may be null, but not absent")


def has_text_code(exchange: Exchange) -> Iterator[Fault]:
    """`error.code` is a text or null."""
    code = at(exchange.json, "error", "code")
    if code is not MISSING and code is not None and not isinstance(code, str):
        yield Fault(f"error.code is {code!r}, expected a text or null")


def is_json_error(exchange: Exchange) -> Iterator[Fault]:
    """An error says that it is JSON, and is no event stream."""
    if _is_success(exchange) or exchange.status is None:
        return
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        yield Fault(f"the error's content type is {kind or 'missing'!r}, expected application/json")


def is_refused(exchange: Exchange, *, allowed: tuple[int, ...]) -> Iterator[Fault]:
    """The status is one of `allowed`; says what was answered instead where the server went on."""
    if _is_success(exchange):
        yield Fault(f"status {exchange.status} and an answer, expected {' or '.join(map(str, allowed))}")
        return
    yield from has_status(exchange, allowed=allowed)


def is_told(
    exchange: Exchange, *, status: int, code: str, param: str | None = None, kind: str = "invalid_request_error"
) -> Iterator[Fault]:
    """Exactly this status, `error.code` and `error.type`; exactly this `error.param`, unless it is None."""
    yield from has_status(exchange, allowed=(status,))
    expected: dict[str, Any] = {"code": code, "type": kind} | ({} if param is None else {"param": param})
    for name, value in expected.items():
        found = at(exchange.json, "error", name)
        if found != value:
            yield Fault(f"error.{name} is {found!r}, expected {value!r}")


def shows_no_internals(exchange: Exchange) -> Iterator[Fault]:
    """Nothing of an error's body tells how the server is built or where it lies."""
    if _is_success(exchange):
        return
    text = "\n".join(_texts(exchange.json)) or exchange.body.decode("utf-8", "replace")
    for name, pattern in INTERNALS.items():
        if (found := pattern.search(text)) is not None:
            yield Fault(f"the error shows {name}: {found[0][:100]!r}")


def has_bounded_message(exchange: Exchange, *, letter: str) -> Iterator[Fault]:
    """`error.message` is at most 2 KiB and quotes at most 64 characters of input that is one `letter` repeated."""
    message = at(exchange.json, "error", "message")
    if not isinstance(message, str):
        yield Fault(f"error.message is {message!r}, expected a text")
        return
    if len(message.encode("utf-8", "surrogatepass")) > MAX_MESSAGE_BYTES:
        yield Fault(f"error.message has {len(message)} characters, expected at most {MAX_MESSAGE_BYTES} bytes")
    if letter * (MAX_QUOTED + 1) in message:
        yield Fault(f"error.message quotes more than {MAX_QUOTED} characters of the request")


def is_no_success_with_error(exchange: Exchange) -> Iterator[Fault]:
    """An answer of status 2xx tells no error, in its body or in its events."""
    if not _is_success(exchange):
        return
    for event, body in exchange.numbered_bodies:
        error = at(body, "error")
        if error is not MISSING and error is not None:
            yield Fault(f"status {exchange.status} with an error: {str(error)[:100]}", event)
            return


def forbids_retry(exchange: Exchange, *, must_say: bool) -> Iterator[Fault]:
    """A request that must be mended first is not to be repeated: no `X-Should-Retry: true`, no `Retry-After`; with
    `must_say`, `X-Should-Retry: false` stands there.
    """
    said = exchange.headers.get("x-should-retry")
    if said == "true":
        yield Fault(f"X-Should-Retry: true on a {exchange.status}, which no repetition cures")
    if must_say and said != "false":
        yield Fault(f"X-Should-Retry is {said!r} on a {exchange.status}, expected 'false'")
    if "retry-after" in exchange.headers:
        yield Fault(f"Retry-After on a {exchange.status}, which no repetition cures")


def _is_success(exchange: Exchange) -> bool:
    return exchange.status is not None and 200 <= exchange.status < 300


def _texts(value: Any) -> Iterator[str]:
    """Yields all texts of a JSON value, names too, as they read without escapes; however deep it is."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part


def _beginning(exchange: Exchange) -> str:
    return repr(exchange.body[:80].decode("utf-8", "replace")) if exchange.body else "it is empty"
