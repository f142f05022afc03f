"""Requests over real sockets, on both HTTP servers: what a client sees on the wire."""

import asyncio
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from tidegate.errors import EngineUnavailable
from tidegate.http.app import make_public_app
from tidegate.http.granian_server import GranianServer
from tidegate.http.listener import bind_unix
from tidegate.http.settings import HttpSettings
from tidegate.http.uvicorn_server import UvicornServer

SETTINGS = HttpSettings(body_bytes=100_000, body_timeout_s=0.3, linger_s=0.3)
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
CLOSE = b"Connection: close\r\n"

pytestmark = pytest.mark.parametrize("kind", ["granian", "uvicorn"])


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(20):
            return await coroutine

    return uvloop.run(bounded())


def split(response: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = response.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status_line.split()[1]), headers, body


def talk_once(make: Any, kind: str, request: bytes) -> tuple[int, dict[str, str], bytes]:
    async def go() -> bytes:
        async with make.serve(kind, make_public_app(make.service(), settings=SETTINGS)) as site:
            answer: bytes = await site.talk(request)
            return answer

    return split(run(go()))


def test_an_answer_has_our_headers_and_is_whole(make: Any, kind: str) -> None:
    request = POST + CLOSE + b"X-Request-Id: mine\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    status, headers, body = talk_once(make, kind, request)
    assert (status, body) == (200, b'{"ok":true}')
    assert (headers["x-request-id"], headers["tidegate-contract"]) == ("mine", "1.0")
    assert (headers["content-type"], headers["content-length"]) == ("application/json", "11")


@pytest.mark.parametrize(
    ("request_bytes", "expected_status", "code"),
    [
        (b"GET /nope HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 404, "route_not_found"),
        (b"GET //v1/models HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 404, "route_not_found"),
        (b"GET /v1%2fmodels HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 404, "route_not_found"),
        (b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 404, "route_not_found"),
        (b"GET http://evil/nope HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 404, "route_not_found"),
        (b"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 405, "method_not_allowed"),
        (POST + CLOSE + b"Content-Length: 100001\r\n\r\n", 413, "body_too_large"),
        (POST + CLOSE + b"Content-Length: 100001\r\n\r\n" + b"a" * 100_001, 413, "body_too_large"),
        (
            POST
            + CLOSE
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + b"2710\r\n"
            + b"a" * 10_000
            + b"\r\n"
            + b"186a0\r\n"
            + b"a" * 100_000
            + b"\r\n0\r\n\r\n",
            413,
            "body_too_large",
        ),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n", 414, "uri_too_long"),
        (POST + CLOSE + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "unsupported_media_type"),
        (POST + CLOSE + b"A: " + b"b" * 70_000 + b"\r\nContent-Length: 2\r\n\r\n{}", 431, "headers_too_large"),
        (POST + CLOSE + b"Content-Length: 9\r\n\r\n{", 408, "slow_request"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n" + CLOSE + b"\r\n", 400, "invalid_value"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_a_refusal_has_our_shape(
    make: Any, kind: str, request_bytes: bytes, expected_status: int, code: str
) -> None:  # ERR-1 ERR-2 ERR-3 SLOW-4
    status, headers, body = talk_once(make, kind, request_bytes)
    error = msgspec.json.decode(body)["error"]
    assert (status, error["code"], headers["content-type"]) == (expected_status, code, "application/json")
    assert headers["x-request-id"]
    assert headers["tidegate-contract"] == "1.0"


def test_an_upload_that_is_refused_half_way_still_gets_its_answer(make: Any, kind: str) -> None:
    async def go() -> bytes:
        settings = HttpSettings(body_bytes=100_000, linger_s=2)
        async with make.serve(kind, make_public_app(make.service(), settings=settings)) as site:
            wire = await site.connect()
            await wire.send(POST + b"Content-Length: 5000000\r\n\r\n")
            for _ in range(50):
                await wire.send(b"a" * 100_000)
            answer: bytes = await wire.read_until(b"}}")
            return answer

    status, _, body = split(run(go()))
    assert status == 413
    assert msgspec.json.decode(body)["error"]["limit"]["actual"] == 5_000_000


def test_head_and_options_have_no_body(make: Any, kind: str) -> None:
    async def go() -> tuple[bytes, bytes, bytes]:
        async with make.serve(kind, make_public_app(make.service())) as site:
            head = await site.talk(b"HEAD /v1/models HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n")
            options = await site.talk(b"OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n")
            missing = await site.talk(b"HEAD /nope HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n")
            return head, options, missing

    head, options, missing = (split(response) for response in run(go()))
    assert (head[0], head[1]["content-length"], head[2]) == (200, "27", b"")
    assert (options[0], options[1]["allow"], options[2]) == (204, "GET, HEAD, OPTIONS", b"")
    assert (missing[0], missing[2]) == (404, b"")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST
        + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_garbage_never_harms_the_next_client(make: Any, kind: str, garbage: bytes) -> None:  # SLOW-6
    async def go() -> tuple[bytes, bytes, int]:
        service = make.service()
        async with make.serve(kind, make_public_app(service, settings=SETTINGS), header_timeout_s=0.5) as site:
            answer = await site.talk(garbage)
            return (
                answer,
                await site.talk(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n"),
                len(service.calls),
            )

    answer, after, _ = run(go())
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert b"HTTP/1.1 5" not in answer
    assert after.startswith(b"HTTP/1.1 200")


def test_a_head_that_does_not_come_is_given_up(make: Any, kind: str) -> None:  # SLOW-3
    async def go() -> list[bytes]:
        async with make.serve(kind, make_public_app(make.service()), header_timeout_s=0.3) as site:
            return await asyncio.gather(*(site.talk(b"GET / HTTP/1.1\r\nHost: x\r\nA: ") for _ in range(20)))

    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 408") for answer in run(go()))


def test_pipelined_requests_are_answered_in_order(make: Any, kind: str) -> None:
    async def go() -> bytes:
        async with make.serve(kind, make_public_app(make.service())) as site:
            batch = b"".join(b"GET /v1/models/m%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(100))
            last = b"GET /v1/models/last HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n"
            answer: bytes = await site.talk(batch + last)
            return answer

    answer = run(go())
    bodies = [part.rpartition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200")[1:]]
    assert bodies == [b"m%d" % number for number in range(100)] + [b"last"]


def test_a_client_is_asked_to_go_on_only_when_its_body_is_wanted(make: Any, kind: str) -> None:
    async def go() -> tuple[bytes, bytes]:
        async with make.serve(kind, make_public_app(make.service(), settings=SETTINGS)) as site:
            wire = await site.connect()
            await wire.send(POST + CLOSE + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            await wire.read_until(b"100 Continue\r\n\r\n")
            await wire.send(b"{}")
            taken = await wire.read_all()
            return taken, await site.talk(POST + b"Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n")

    taken, refused = run(go())
    assert b"HTTP/1.1 200" in taken
    assert refused.startswith(b"HTTP/1.1 413")
    assert b"100 Continue" not in refused


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_leaves_inside_its_body_leaves_nothing(
    make: Any, kind: str, is_reset: bool, caplog: pytest.LogCaptureFixture
) -> None:  # SLOW-5
    async def go() -> int:
        service = make.service()
        async with make.serve(kind, make_public_app(service)) as site:
            for _ in range(20):
                wire = await site.connect()
                await wire.send(POST + b"Content-Length: 100\r\n\r\n{")
                await asyncio.sleep(0.005)
                if is_reset:
                    wire.reset()
                else:
                    wire.close()
        return len(service.calls)

    assert run(go()) == 0
    assert not caplog.records


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_leaves_before_the_status_cancels_its_call(make: Any, kind: str, is_reset: bool) -> None:
    async def go() -> None:
        service = make.service()
        service.hang()
        async with make.serve(kind, make_public_app(service)) as site:
            wire = await site.connect()
            await wire.send(POST + b"Content-Length: 2\r\n\r\n{}")
            await service.arrived.wait()
            assert service.num_cancelled == 0
            if is_reset:
                wire.reset()
            else:
                wire.close()
            await make.eventually(lambda: service.num_cancelled == 1)

    run(go())


def test_a_connection_is_used_again_after_answers_and_refusals(make: Any, kind: str) -> None:
    async def go() -> int:
        service = make.service()
        async with make.serve(kind, make_public_app(service)) as site:
            wire = await site.connect()
            for _ in range(5):
                await wire.send(POST + b"Content-Length: 2\r\n\r\n{}")
                await wire.read_until(b'{"ok":true}')
                await wire.send(b"POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
                await wire.read_until(b"route_not_found")
                await wire.read_until(b"}}")
                wire.received = b""
            return len(service.calls)

    assert run(go()) == 5


def is_refused(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def test_stop_lets_a_running_answer_finish_and_refuses_new_connections(make: Any, kind: str) -> None:
    async def go() -> bytes:
        service = make.service()
        release = asyncio.Event()

        async def answer(call: Any) -> Any:
            await release.wait()
            return make.whole(b'{"late":1}')

        service.answer = answer
        async with make.serve(kind, make_public_app(service)) as site:
            wire, idle = await site.connect(), await site.connect()
            await wire.send(POST + b"Content-Length: 2\r\n\r\n{}")
            await service.arrived.wait()
            stopping = asyncio.ensure_future(site.server.stop())
            assert await idle.read_all() == b""
            assert not stopping.done()
            await make.eventually(lambda: is_refused(site.server.port))
            release.set()
            await wire.read_until(b'{"late":1}')
            await stopping
            answer_bytes: bytes = wire.received
            return answer_bytes

    assert split(run(go()))[0] == 200


def test_stop_cuts_off_what_does_not_end(make: Any, kind: str) -> None:
    async def go() -> None:
        service = make.service()
        service.hang()
        async with make.serve(kind, make_public_app(service), stop_grace_s=0.1) as site:
            wire = await site.connect()
            await wire.send(POST + b"Content-Length: 2\r\n\r\n{}")
            await service.arrived.wait()
            await site.server.stop()
            await site.server.wait_stopped()
            assert await wire.read_all() == b""
            await make.eventually(lambda: service.num_cancelled == 1)

    run(go())


def test_a_failure_to_answer_keeps_the_server_alive(make: Any, kind: str) -> None:
    async def go() -> bytes:
        service = make.service()
        service.raise_(EngineUnavailable("Starting.", retry_after_s=7))
        async with make.serve(kind, make_public_app(service)) as site:
            answer: bytes = await site.talk(POST + CLOSE + b"Content-Length: 2\r\n\r\n{}")
            return answer

    status, headers, _ = split(run(go()))
    assert (status, headers["retry-after"], headers["x-should-retry"]) == (503, "7", "true")


def test_a_unix_socket_serves_too(make: Any, kind: str, tmp_path: Path) -> None:
    async def go() -> bytes:
        path = tmp_path / "s"
        server = {"granian": GranianServer, "uvicorn": UvicornServer}[kind](
            make_public_app(make.service()), bind_unix(path)
        )
        await server.start()
        assert (server.url, server.port) == (f"unix:{path}", 0)
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n")
        answer = await reader.read()
        writer.close()
        await server.stop()
        assert not path.exists()
        return answer

    assert split(run(go()))[0] == 200


def test_a_server_that_was_never_started_can_be_stopped(make: Any, kind: str, tmp_path: Path) -> None:
    async def go() -> None:
        path = tmp_path / "s"
        sock = bind_unix(path)
        server = {"granian": GranianServer, "uvicorn": UvicornServer}[kind](make_public_app(make.service()), sock)
        await server.stop()
        assert sock.fileno() == -1
        assert not path.exists()
        with pytest.raises(FileNotFoundError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))

    run(go())
