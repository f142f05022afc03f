"""Bytes that are not quite HTTP, on both HTTP servers: each is refused or bounded, and none smuggles a request in.

Runs the real application in front of a service that counts: what must never happen is that bytes which others take for
a body arrive as a request.
"""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop

from tidegate.http.app import make_public_app
from tidegate.http.settings import HttpSettings

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /v1/models/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = b"2\r\n{}\r\n0\r\n\r\n"
SETTINGS = HttpSettings(body_bytes=100_000, body_timeout_s=0.5, linger_s=0.3)

REFUSED: dict[str, bytes] = {
    "two lengths that differ": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "list of equal lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "list of lengths that differ": POST + b"Content-Length: 2, 50\r\n\r\n{}" + SMUGGLED,
    "negative length": POST + b"Content-Length: -2\r\n\r\n{}",
    "length with a plus": POST + b"Content-Length: +2\r\n\r\n{}",
    "hexadecimal length": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "empty length": POST + b"Content-Length: \r\n\r\n",
    "length with a blank inside": POST + b"Content-Length: 2 2\r\n\r\n{}",
    "length with an underscore": POST + b"Content-Length: 1_0\r\n\r\n{}",
    "length beyond 64 bits": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "two hosts": GET + b"Host: y\r\n\r\n",
    "two equal hosts": GET + b"Host: x\r\n\r\n",
    "bare carriage return": b"GET /healthz HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
    "folded header": GET + b"A: b\r\n c\r\n\r\n",
    "folded first header": b"GET /healthz HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n",
    "folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + WHOLE,
    "chunk size that is no number": CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    "negative chunk size": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "chunk size with 0x": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "chunk size beyond 64 bits": CHUNKED + b"10000000000000002\r\n{}\r\n0\r\n\r\n",
    "chunk longer than its size": CHUNKED + b"2\r\n{}XX0\r\n\r\n" + SMUGGLED,
    "chunks ended by line feeds": CHUNKED + b"2\n{}\n0\n\n" + SMUGGLED,
    "line feed in a chunk extension": CHUNKED + b"2;a\nb\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
    "huge chunk extension": CHUNKED + b"2;" + b"a" * 2_000_000 + b"\r\n{}\r\n0\r\n\r\n",
    "huge trailer": CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "many trailers": CHUNKED + b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 400_000 + b"\r\n",
    "coding identity": POST + b"Transfer-Encoding: identity\r\n\r\n{}",
    "coding xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + WHOLE,
    "coding after chunked": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + WHOLE,
    "coding before chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + WHOLE,
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + WHOLE,
    "two codings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + WHOLE,
    "coding after a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + WHOLE,
    "coding with a blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n" + WHOLE,
    "coding in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + WHOLE,
    "NUL in a value": GET + b"A: b\x00c\r\n\r\n",
    "NUL in a name": GET + b"A\x00: b\r\n\r\n",
    "NUL in the target": b"GET /heal\x00thz HTTP/1.1\r\nHost: x\r\n\r\n",
    "blank before the colon": GET + b"A : b\r\n\r\n",
    "no colon": GET + b"Ab\r\n\r\n",
    "no name": GET + b": b\r\n\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "HTTP/2.0 in a line": b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
    "HTTP/1.2": b"GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n",
    "method in lower case": b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
}
"""Never reaches the service, never 200, and the connection is closed."""

TAKEN: dict[str, bytes] = {
    "length and chunked": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two equal lengths": POST + b"Connection: close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + SMUGGLED,
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\nConnection: close\n\n" + SMUGGLED,
    "blank after a chunk size": POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
    "request as a body of GET": GET + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
    "request as a trailer": POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + SMUGGLED,
    "upgrade to HTTP/2": GET + b"Connection: close, Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
    "upgrade to a web socket": GET + b"Connection: close, upgrade\r\nUpgrade: websocket\r\n\r\n" + SMUGGLED,
}
"""One server answers and closes, as RFC 9112 allows, the other refuses: both are right, and nothing follows."""

pytestmark = pytest.mark.parametrize("kind", ["granian", "uvicorn"])


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await coroutine

    return uvloop.run(bounded())


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d\d\d)", answer)]


def make_site(make: Any, kind: str, service: Any) -> Any:
    return make.serve(kind, make_public_app(service, settings=SETTINGS), header_timeout_s=0.5)


def test_what_is_not_http_is_refused_and_closed(make: Any, kind: str) -> None:  # SLOW-6
    async def go() -> None:
        service = make.service()
        async with make_site(make, kind, service) as site:
            answers = await asyncio.gather(*(site.talk(vector) for vector in REFUSED.values()))
            for name, answer in zip(REFUSED, answers, strict=True):
                assert len(statuses(answer)) <= 1, (name, answer)
                assert all(400 <= status < 500 for status in statuses(answer)), (name, answer)
                assert b"smuggled" not in answer, name
            assert not service.calls
            assert (await site.talk(GET + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200")

    run(go())


def test_what_servers_read_differently_is_answered_once_and_closed(make: Any, kind: str) -> None:  # SLOW-6
    async def go() -> None:
        service = make.service()
        async with make_site(make, kind, service) as site:
            for name, vector in TAKEN.items():
                answer = await site.talk(vector)
                assert len(statuses(answer)) == 1, (name, answer)
                assert statuses(answer)[0] in (200, 400), (name, answer)
                assert b"smuggled" not in answer, name

    run(go())


@pytest.mark.parametrize("target", [b"http://evil/v1/models/m", b"http://evil:99/v1/models/m"])
def test_an_absolute_target_is_its_path_whatever_its_host(make: Any, kind: str, target: bytes) -> None:  # SEC-9
    async def go() -> bytes:
        async with make_site(make, kind, make.service()) as site:
            answer: bytes = await site.talk(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return answer

    answer = run(go())
    assert statuses(answer) == [200]
    assert answer.endswith(b"\r\n\r\nm")


@pytest.mark.parametrize("target", [b"*", b"evil:443", b"healthz", b"/../healthz", b"/./healthz"])
def test_other_targets_find_nothing(make: Any, kind: str, target: bytes) -> None:
    async def go() -> list[bytes]:
        async with make_site(make, kind, make.service()) as site:
            return [
                await site.talk(method + b" " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                for method in (b"GET", b"CONNECT", b"TRACE")
            ]

    for answer in run(go()):
        assert all(status in (400, 404, 405) for status in statuses(answer)), answer


def test_a_thousand_pipelined_requests_are_carried_out_one_after_another(make: Any, kind: str) -> None:  # SLOW-6
    async def go() -> None:
        service = make.service()
        num_running, most = 0, 0

        async def answer(call: Any) -> Any:
            nonlocal num_running, most
            num_running += 1
            most = max(most, num_running)
            await asyncio.sleep(0)
            num_running -= 1
            return make.whole(call.body)

        service.answer = answer
        async with make_site(make, kind, service) as site:
            bodies = [b"%04d" % number for number in range(1000)]
            batch = b"".join(POST + b"Content-Length: 4\r\n\r\n" + body for body in bodies)
            wire = await site.connect()
            sending = asyncio.ensure_future(wire.send(batch))
            received = await wire.read_until(b"0999")
            await sending
        assert re.findall(rb"\r\n\r\n(\d{4})", received) == bodies
        assert most == 1

    run(go())


def test_who_pipelines_a_thousand_and_leaves_leaves_nothing(make: Any, kind: str) -> None:  # SLOW-6
    async def go() -> int:
        service = make.service()
        service.hang()
        async with make_site(make, kind, service) as site:
            wire = await site.connect()
            await wire.send((POST + b"Content-Length: 2\r\n\r\n{}") * 1000)
            await service.arrived.wait()
            wire.reset()
            await make.eventually(lambda: service.num_cancelled == len(service.calls))
        return len(service.calls)

    assert run(go()) == 1


def test_a_range_is_not_looked_at(make: Any, kind: str) -> None:  # SEC-25
    async def go() -> list[bytes]:
        ranges = b"Range: bytes=" + b",".join(b"%d-" % number for number in range(9000)) + b"\r\n"
        async with make_site(make, kind, make.service()) as site:
            return [
                await site.talk(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + asked + b"\r\n")
                for asked in (b"", b"Range: bytes=0-1\r\n", ranges)
            ]

    plain, one, many = (answer.partition(b"\r\n\r\n") for answer in run(go()))
    for head, _, body in (one, many):
        assert head.startswith(b"HTTP/1.1 200")
        assert body == plain[2]
        assert b"content-range" not in head.lower()


@pytest.mark.parametrize("size", [70_000, 2_000_000])
def test_a_huge_header_is_431_and_others_are_served(make: Any, kind: str, size: int) -> None:  # SEC-27 SLOW-4
    async def go() -> None:
        async with make_site(make, kind, make.service()) as site:
            answer = await site.talk(GET + b"A: " + b"b" * size + b"\r\n\r\n")
            assert statuses(answer) in ([431], [])  # a reset may overtake the answer
            if size < 100_000:
                assert statuses(answer) == [431]
            long_target = await site.talk(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert statuses(long_target) == [414]
            assert statuses(await site.talk(GET + b"Connection: close\r\n\r\n")) == [200]

    run(go())
