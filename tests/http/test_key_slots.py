"""A key's slot is taken before the body is read, and given back when the answer ends, however it ends."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidegate.errors import EngineLost, LimitFact, RateFacts, RateLimited
from tidegate.http.app import AppPorts, make_public_app
from tidegate.http.request_head import RequestHead
from tidegate.lifecycle.principal import Principal
from tidegate.testing.asgi_client import AsgiClient

CHAT = "/v1/chat/completions"
CALLER = Principal("k1", "caller")


class Slots:
    """Counts what is held; refuses when told to."""

    def __init__(self) -> None:
        self.num_held = 0
        self.asked: list[tuple[Principal, str]] = []
        self.refusal: RateLimited | None = None

    async def claim_slot(self, principal: Principal, route: str) -> "Slots":
        self.asked.append((principal, route))
        if self.refusal is not None:
            raise self.refusal
        self.num_held += 1
        return self

    def release(self) -> None:
        self.num_held -= 1


@pytest.fixture
def service(make: Any) -> Any:
    service = make.service()
    service.slots = Slots()
    service.claim_slot = service.slots.claim_slot
    return service


def client(service: Any) -> AsgiClient:
    return AsgiClient(make_public_app(service, ports=AppPorts(authorise=authorise)))


def authorise(_head: RequestHead) -> Principal:
    return CALLER


def test_a_refusal_comes_before_the_body_and_says_what_is_left(service: Any) -> None:  # RL-1
    limit = LimitFact("concurrency", 1, 2, "key")
    service.slots.refusal = RateLimited("One at a time.", limit=limit, rate=RateFacts(60, 7, 12.5))

    async def scene() -> None:
        connection = client(service).open("POST", CHAT, body=None)
        await connection.settle()
        assert connection.status == 429, "no byte of the body was awaited"
        assert connection.headers["x-ratelimit-remaining-requests"] == "7"
        assert connection.headers["x-ratelimit-reset-requests"] == "13s"
        assert msgspec.json.decode(connection.body)["error"]["limit"]["name"] == "concurrency"
        connection.disconnect()
        await connection.settle()

    asyncio.run(scene())
    assert service.slots.asked == [(CALLER, CHAT)]
    assert service.calls == []


@pytest.mark.parametrize("end", ["whole", "error", "broken body", "client gone", "stream", "stream left"])
def test_the_slot_is_held_as_long_as_the_answer_lasts(service: Any, make: Any, end: str) -> None:
    async def scene() -> None:
        stream = make.stream(b"data: 1\n\n")
        if end == "error":
            service.raise_(EngineLost("gone"))
        elif end == "client gone":
            service.hang()
        elif end.startswith("stream"):
            service.reply = stream
        connection = client(service).open("POST", CHAT, body=None)
        await connection.settle()
        assert service.slots.num_held == 1, "while the body is awaited"
        if end == "broken body":
            connection.disconnect()
        else:
            connection.feed(b"{}")
        await connection.settle()
        if end in ("client gone", "stream", "stream left"):
            assert service.slots.num_held == 1
            stream.end() if end == "stream" else connection.disconnect()
            await connection.settle()
        assert service.slots.num_held == 0

    asyncio.run(scene())


@pytest.mark.parametrize("target", ["/v1/models", "/healthz", "/health", "/v1/models/a"])
def test_what_neither_generates_nor_tokenizes_takes_no_slot(service: Any, target: str) -> None:
    asyncio.run(client(service).request("GET", target))
    assert service.slots.asked == []
