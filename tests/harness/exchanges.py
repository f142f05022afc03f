"""Exchanges as they would come about, put together by hand."""

import json
from typing import Any

from tidegate.conformance.wire.exchange import Ending, Exchange, Piece


def http(status: int, body: bytes, content_type: str = "application/json", **headers: str) -> bytes:
    """Returns a whole response."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answered(status: int, body: Any, **headers: str) -> Exchange:
    """Returns an exchange whose answer is this JSON."""
    return exchanged(http(status, json.dumps(body).encode(), **headers))


def exchanged(*pieces: bytes, ending: Ending = Ending.WHOLE, method: str = "POST", **fields: Any) -> Exchange:
    """Returns an exchange in which these bytes came, a tenth of a second apart."""
    defaults = {"ask": "it", "copy": 0, "url": "http://server/v1/chat/completions", "request": b"", "marker": "m"}
    return Exchange(
        **defaults | fields,
        method=method,
        pieces=tuple(Piece(index / 10, data) for index, data in enumerate(pieces)),
        ending=ending,
    )
