"""What is left of a body that was refused: read, so that the answer survives, but only up to a bound."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tidegate.http import request_body
from tidegate.http.app import make_public_app
from tidegate.http.asgi import Message
from tidegate.http.settings import HttpSettings

PART = b"x" * (1024 * 1024)
BOUND = 20 * len(PART)


def test_no_more_of_a_refused_body_is_read_than_the_bound(  # OVL-8 SLOW-4
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sends for ever is read up to the bound, and not a part further."""
    monkeypatch.setattr(request_body, "_DISCARDED_BYTES", BOUND)
    num_read, sent = 0, []

    async def receive() -> Message:
        nonlocal num_read
        num_read += len(PART)
        return {"type": "http.request", "body": PART, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    async def go() -> None:
        settings = HttpSettings(body_bytes=1024, linger_s=600.0)
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "raw_path": b"/v1/chat/completions",
            "query_string": b"",
            "headers": [(b"host", b"x"), (b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")],
            "client": ("127.0.0.1", 1),
        }
        answering: Awaitable[None] = make_public_app(make.service(), settings=settings)(scope, receive, send)
        await answering

    asyncio.run(go())
    assert sent[0]["status"] == 413
    assert BOUND <= num_read <= BOUND + 2 * len(PART)
