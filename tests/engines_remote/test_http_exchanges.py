"""One exchange with a server that writes what it likes: HTTP is read, anything else ends the exchange once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidegate.engines.remote import ask as ask_module
from tidegate.engines.remote import connection_pool as pool_module
from tidegate.engines.remote import http_connection as http_module
from tidegate.engines.remote.ask import Answer, Ask, EngineAway
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.dialect import Order
from tidegate.engines.remote.endpoint import parse_endpoint
from tidegate.engines.remote.side_orders import SideOrders
from tidegate.testing.manual_clock import ManualClock


class Written:
    """A server that answers each request with the next of `answers`; None: with silence. Then the connection stays."""

    def __init__(self, *answers: bytes | None, closes: bool = False) -> None:
        self.num_connections = 0
        self._answers = list(answers)
        self._closes = closes
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> "Written":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.clock = ManualClock()
        self.pool = ConnectionPool(parse_endpoint(f"http://127.0.0.1:{port}"), self.clock.now)
        self.ask = Ask(self.pool, 5.0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pool.close()
        assert self._server is not None
        self._server.close()
        for writer in self._open.values():
            writer.transport.abort()
        await asyncio.gather(*self._open, return_exceptions=True)
        while self.pool.num_open:
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                answer = self._answers.pop(0)
                if answer is not None:
                    writer.write(answer)
                if self._closes:
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        writer.close()


def run(server: Written, play: Callable[[Written], Awaitable[None]]) -> None:
    async def go() -> None:
        async with server:
            await play(server)

    asyncio.run(go())


HEAD = b"HTTP/1.1 200 OK\r\n"
READ: dict[str, tuple[bytes, Answer]] = {
    "with a length": (HEAD + b"Content-Length: 2\r\n\r\nok", Answer(200, b"ok")),
    "in chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", Answer(200, b"ok")),
    "until the end": (HEAD + b"\r\nok", Answer(200, b"ok")),
    "behind an informational one": (
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nok",
        Answer(200, b"ok"),
    ),
    "without a body": (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b"")),
    "of an error": (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", Answer(503, b"")),
}


@pytest.mark.parametrize("name", READ)
def test_an_answer_is_read_however_it_is_framed(name: str) -> None:
    written, answer = READ[name]

    async def play(server: Written) -> None:
        assert await server.ask.get("/x") == answer

    run(Written(written, closes=True), play)


CUT: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200",
    "half a body": HEAD + b"Content-Length: 10\r\n\r\nok",
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nok",
    "what is not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a length that is none": HEAD + b"Content-Length: many\r\n\r\n",
}


@pytest.mark.parametrize("name", CUT)
def test_what_is_no_whole_answer_ends_the_question(name: str) -> None:
    async def play(server: Written) -> None:
        with pytest.raises(EngineAway):
            await server.ask.get("/x")

    run(Written(CUT[name], closes=True), play)


OK = HEAD + b"Content-Length: 2\r\n\r\nok"


def test_a_connection_is_used_again_while_it_is_fresh() -> None:
    async def play(server: Written) -> None:
        await server.ask.get("/a")
        await server.ask.get("/b")
        assert (server.num_connections, server.ask.was_dialled) == (1, False)
        server.clock.advance(pool_module.MAX_IDLE_S + 0.1)
        await server.ask.get("/c")
        assert (server.num_connections, server.ask.was_dialled) == (2, True)

    run(Written(OK, OK, OK), play)


@pytest.mark.parametrize(
    "first",
    [HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nok", OK + b"HTTP/1.1 200 OK\r\n"],
    ids=["told to close", "more bytes than asked for"],
)
def test_a_connection_that_cannot_be_trusted_is_not_used_again(first: bytes) -> None:
    async def play(server: Written) -> None:
        await server.ask.get("/a")
        await asyncio.sleep(0)
        assert (await server.ask.get("/b")).body == b"ok"
        assert server.num_connections == 2

    run(Written(first, OK), play)


def test_a_question_without_an_answer_is_given_up_and_its_connection_closed() -> None:
    async def play(server: Written) -> None:
        with pytest.raises(EngineAway, match=r"within 0\.05 s"):
            await Ask(server.pool, 0.05).get("/x")
        while server.pool.num_open:
            await asyncio.sleep(0)

    run(Written(None), play)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_module, "MAX_ANSWER_BYTES", 100)

    async def play(server: Written) -> None:
        with pytest.raises(EngineAway, match="more than 100 bytes"):
            await server.ask.get("/x")

    run(Written(HEAD + b"\r\n" + b"x" * 101), play)


def test_a_head_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "MAX_HEAD_BYTES", 100)

    async def play(server: Written) -> None:
        with pytest.raises(EngineAway, match="a head of more than 100 bytes"):
            await server.ask.get("/x")

    run(Written(HEAD + b"X: y\r\n" * 20), play)


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "MAX_CONNECTIONS", 1)

    async def play(server: Written) -> None:
        connection = await server.pool.dial()
        with pytest.raises(EngineAway, match="1 connections to the engine are open"):
            await server.ask.get("/x")
        connection.cut()

    run(Written(OK), play)


def test_idle_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "MAX_IDLE", 2)

    async def play(server: Written) -> None:
        await asyncio.gather(*(server.ask.get("/x") for _ in range(5)))
        assert server.num_connections == 5
        assert server.pool.num_idle == 2

    run(Written(*[OK] * 5), play)


def test_orders_that_nobody_waits_for_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.engines.remote.side_orders.MAX_SIDE_ORDERS", 2)

    async def play(server: Written) -> None:
        side = SideOrders(server.pool)
        for _ in range(5):
            side.send(Order("/abort", b"{}", is_stream=False))
        assert side.num_open == 2
        await side.aclose()
        assert side.num_open == 0

    run(Written(None, None), play)


def test_an_address_where_nobody_listens_is_away() -> None:
    async def go() -> None:
        pool = ConnectionPool(parse_endpoint("http://127.0.0.1:1"), ManualClock().now)
        with pytest.raises(EngineAway, match="cannot be reached"):
            await Ask(pool, 5.0).get("/x")
        assert pool.num_open == 0

    asyncio.run(go())
