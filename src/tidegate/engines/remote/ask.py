"""Ask: one question and its whole answer, within bounds of time and size."""

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tidegate.engines.remote.connection_pool import ConnectionPool

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_SHOWN_BYTES = 300

T = TypeVar("T")


class EngineAway(Exception):
    """The engine cannot be reached, or does not answer. The message is for operators."""


class EngineUnfit(Exception):
    """The engine answers, but must not be served. The message says why, with the numbers, for operators."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is whole."""

    status: int
    body: bytes

    @property
    def shown(self) -> str:
        """The status and the beginning of the body, on one line, for operators."""
        text = " ".join(self.body[:_SHOWN_BYTES].decode("utf-8", "replace").split())
        return f"status {self.status}" + (f": {text}" if text else "")

    def read(self, kind: type[T]) -> T:
        """Returns the body as JSON of this shape. Raises EngineUnfit."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except msgspec.MsgspecError as error:
            raise EngineUnfit(f"it answered what is not of its protocol ({error}): {self.shown}") from None


class Ask:
    """Questions to one engine. Belongs to one event loop."""

    def __init__(self, pool: ConnectionPool, timeout_s: float) -> None:
        self.was_dialled = False
        """Whether the last question needed a new connection."""
        self._pool = pool
        self._timeout_s = timeout_s

    async def get(self, path: str) -> Answer:
        """Raises EngineAway."""
        return await self._exchange("GET", path, None)

    async def post(self, path: str, body: bytes) -> Answer:
        """Raises EngineAway."""
        return await self._exchange("POST", path, body)

    async def expect_health(self, path: str) -> None:
        """Raises EngineAway where the engine does not say that it is well, EngineUnfit for a wrong key."""
        answer = await self.get(path)
        _check_key(path, answer)
        if answer.status != 200:
            raise EngineAway(f"it says that it is not well: {answer.shown}")

    async def get_as(self, path: str, kind: type[T]) -> T | None:
        """Returns JSON of this shape; None where there is no such path. Raises EngineAway and EngineUnfit."""
        answer = await self.get(path)
        if answer.status in (404, 405):
            return None
        _check_key(path, answer)
        if answer.status != 200:
            raise EngineAway(f"{path} was answered with {answer.shown}")
        return answer.read(kind)

    async def _exchange(self, method: str, path: str, body: bytes | None) -> Answer:
        head = self._pool.endpoint.head(method, path, None if body is None else len(body))
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = self._pool.try_take()
                self.was_dialled = connection is None
                if connection is None:
                    connection = await self._pool.dial()
                receiver = _Whole()
                connection.send(head + (body or b""), receiver)
                try:
                    return await receiver.answer
                finally:
                    if not receiver.is_whole:
                        connection.cut()
        except TimeoutError:
            raise EngineAway(f"{path} was not answered within {self._timeout_s:g} s") from None
        except OSError as error:
            raise EngineAway(f"it cannot be reached: {error.strerror or error}") from None


def _check_key(path: str, answer: Answer) -> None:
    if answer.status in (401, 403):
        raise EngineUnfit(f"it refuses our API key on {path}; engine.api_key_file must name the file with it")


class _Whole:
    """Collects one answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.is_whole = False
        self._status = 0
        self._body = bytearray()

    def take_head(self, status: int) -> None:
        self._status = status

    def take_body(self, data: bytes) -> None:
        self._body += data
        if len(self._body) > MAX_ANSWER_BYTES:
            self.lose(f"an answer of more than {MAX_ANSWER_BYTES} bytes")

    def end(self) -> None:
        self.is_whole = True
        if not self.answer.done():
            self.answer.set_result(Answer(self._status, bytes(self._body)))

    def lose(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(EngineAway(reason))
