"""The yardstick: an ASGI application that sends prebuilt chunks, one for each stream in each step, and no more.

Usage: bare_stream.py NUM_TOKENS STEP_S. Prints its port. Same HTTP server and event loop as `tidegate serve`.
"""

import asyncio
import sys

import uvloop

from tidegate.http.asgi import Receive, Scope, Send
from tidegate.http.granian_server import GranianServer
from tidegate.http.listener import bind_tcp
from tidegate.http.settings import ServerSettings

FRAME = (
    b'data: {"id":"chatcmpl-000000000000000000000000","object":"chat.completion.chunk","created":1700000000,'
    b'"model":"scripted","system_fingerprint":"tg_00000000000000000000000000000000","choices":[{"index":0,'
    b'"delta":{"content":"word "},"logprobs":null,"finish_reason":null}]}\n\n'
)
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


class Ticker:
    """Wakes every stream once a step."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def wait(self) -> None:
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._step_s)
            due, self._next = self._next, loop.create_future()
            due.set_result(None)


async def main(num_tokens: int, step_s: float) -> None:
    ticker = Ticker(step_s)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        for _ in range(num_tokens):
            await ticker.wait()
            await send({"type": "http.response.body", "body": FRAME, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    server = GranianServer(app, bind_tcp("127.0.0.1", 0), ServerSettings())
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2])))
