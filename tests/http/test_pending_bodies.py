"""The sum of all bodies that are held is bounded before anything is read."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import NoCapacity
from tidegate.http.app import make_public_app
from tidegate.http.pending_bodies import SMALL_BODY_BYTES, PendingBodies
from tidegate.http.settings import HttpSettings
from tidegate.testing.asgi_client import AsgiClient

CHAT = "/v1/chat/completions"
BIG = 10 * SMALL_BODY_BYTES


def test_a_body_that_does_not_fit_is_refused_and_takes_nothing() -> None:
    bodies = PendingBodies(4 * BIG)
    bodies.reserve(0, 3 * BIG)
    with pytest.raises(NoCapacity) as refused:
        bodies.reserve(0, BIG)
    limit = refused.value.limit
    assert limit is not None
    assert (limit.name, limit.value, limit.actual, limit.scope) == ("pending_body_bytes", 4 * BIG, 4 * BIG, "server")
    assert bodies.num_bytes == 3 * BIG


def test_large_bodies_leave_room_for_small_ones() -> None:
    bodies = PendingBodies(BIG)
    bodies.reserve(0, BIG * 7 // 8)
    bodies.reserve(0, 1000)
    with pytest.raises(NoCapacity):
        bodies.reserve(0, SMALL_BODY_BYTES + 1)


def test_one_body_alone_always_enters() -> None:
    bodies = PendingBodies(1024)
    bodies.reserve(0, 4096)
    bodies.reserve(4096, 4096)
    bodies.release(8192)
    assert bodies.num_bytes == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 300_000)), max_size=60))
def test_the_sum_stays_within_the_bound_and_comes_back(steps: list[tuple[int, int]]) -> None:
    bodies, held = PendingBodies(1_000_000), dict.fromkeys(range(10), 0)
    for index, more in steps:
        try:
            bodies.reserve(held[index], more)
        except NoCapacity:
            bodies.release(held[index])
            held[index] = 0
        else:
            held[index] += more
        others = [size for size in held.values() if size]
        assert bodies.num_bytes == sum(others)
        assert bodies.num_bytes <= bodies.max_bytes or len(others) == 1
    for size in held.values():
        bodies.release(size)
    assert bodies.num_bytes == 0


def opened(app: Any, declared: int | None, body: bytes) -> Any:
    framing = ("transfer-encoding", "chunked") if declared is None else ("content-length", str(declared))
    connection = AsgiClient(app).open("POST", CHAT, headers=[framing], body=None)
    connection.feed(body, more=True)
    return connection


@pytest.mark.parametrize("declared", [None, 90_000])
def test_a_body_over_the_sum_is_503_and_room_comes_back_with_the_answers(make: Any, declared: int | None) -> None:
    async def go() -> None:  # OVL-8
        service = make.service()
        app = make_public_app(service, settings=HttpSettings(pending_body_bytes=100_000, linger_s=0.01))
        first = opened(app, 90_000, b"x")
        await first.settle()
        second = opened(app, declared, b"x" * 90_000)
        await second.ended()
        error = msgspec.json.decode(second.body)["error"]
        assert (second.status, error["code"], error["type"]) == (503, "no_capacity", "overloaded_error")
        assert (second.headers["retry-after"], second.headers["x-should-retry"]) == ("1", "true")
        assert error["limit"]["name"] == "pending_body_bytes"
        assert error["limit"]["scope"] == "server"
        first.feed(b"x" * 89_999, more=False)
        await first.ended()
        assert first.status == 200
        third = opened(app, declared, b"x" * 89_000)
        third.feed(b"x" * 1000, more=False)
        await third.ended()
        assert third.status == 200

    asyncio.run(go())


def test_a_client_that_leaves_inside_its_body_gives_its_room_back(make: Any) -> None:
    async def go() -> None:
        app = make_public_app(make.service(), settings=HttpSettings(pending_body_bytes=100_000))
        for _ in range(5):
            gone = opened(app, 90_000, b"x")
            await gone.settle()
            gone.disconnect()
            await gone.ended()

    asyncio.run(go())
