"""Reads a body within its bounds of size and time."""

import asyncio

from tidegate.errors import BodyTooLarge, InvalidValue, LimitFact, SlowRequest, UnsupportedMediaType
from tidegate.http.exchange import Exchange
from tidegate.http.request_head import RequestHead
from tidegate.http.settings import HttpSettings

_DISCARDED_BYTES = 256 * 1024 * 1024


def check_media_type(head: RequestHead) -> None:
    """Accepts JSON, under any of its names, and a body that names no type. Raises UnsupportedMediaType."""
    media_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = media_type in ("", "application/json") or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    if not is_json:
        raise UnsupportedMediaType("The body must be application/json.")
    if head.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must be sent without a content encoding.")


async def read_body(exchange: Exchange, settings: HttpSettings) -> bytes:
    """Returns the whole body.

    The room that it takes is reserved first: by the declared length, or as parts come. It is held until the answer
    begins. Raises NoCapacity when the server has no room for it, BodyTooLarge (from the declared length before
    anything is read, else as soon as too much has come), SlowRequest, and InvalidValue for a body that broke off: the
    client has gone, or what it sent is not HTTP, which servers report as the same thing.
    """
    declared = exchange.head.content_length
    if declared is not None and declared > settings.body_bytes:
        raise _too_large(settings.body_bytes, declared)
    exchange.reserve_body(declared or 0)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            body = await _read_parts(exchange, settings.body_bytes)
    except TimeoutError:
        exchange.is_cut_off = True
        raise SlowRequest(f"The body did not arrive within {settings.body_timeout_s:g} seconds.") from None
    exchange.is_body_read = True
    return body


async def discard_body(exchange: Exchange, settings: HttpSettings) -> None:
    """Reads and drops what is left of a body that was refused, so that closing does not destroy the answer."""
    if exchange.is_body_read or exchange.is_cut_off or "expect" in exchange.head.headers:
        return  # who expects leave to send never gets it
    declared = exchange.head.content_length
    max_bytes = _DISCARDED_BYTES if declared is None else min(declared, _DISCARDED_BYTES)
    num_bytes = 0
    try:
        async with asyncio.timeout(settings.linger_s):
            while num_bytes < max_bytes:  # once the answer is out, the end of the body may not be told
                message = await exchange.receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                num_bytes += len(message.get("body", b""))
    except TimeoutError:
        return


async def _read_parts(exchange: Exchange, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    num_bytes = 0
    receive = exchange.receive
    while True:
        message = await receive()
        if message["type"] != "http.request":
            exchange.is_gone = exchange.is_cut_off = True
            raise InvalidValue("The body broke off.")
        part = message.get("body", b"")
        if part:
            num_bytes += len(part)
            if num_bytes > max_bytes:
                raise _too_large(max_bytes, num_bytes)
            if num_bytes > exchange.num_body_bytes:
                exchange.reserve_body(num_bytes - exchange.num_body_bytes)
            parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(max_bytes: int, actual: int) -> BodyTooLarge:
    limit = LimitFact(name="body_bytes", value=max_bytes, actual=actual)
    return BodyTooLarge(f"The body is larger than {max_bytes} bytes.", limit=limit)
