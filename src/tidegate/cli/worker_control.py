"""How the first process asks its workers: one line of JSON on a Unix socket, one answer until the end of the stream."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

_log = logging.getLogger(__name__)

Answer = Callable[[str], bytes]
"""Gets the question's argument, "" where it has none."""
MAX_QUESTION_BYTES = 256 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
ASK_TIMEOUT_S = 5.0


class Question(msgspec.Struct, frozen=True, array_like=True):
    word: str
    argument: str = ""


async def answer_questions(path: Path, answers: dict[str, Answer]) -> asyncio.Server:
    """Listens at `path` until the returned server is closed. What is no question of ours gets no answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.LimitOverrunError, ValueError, msgspec.MsgspecError):
            question = msgspec.json.decode(await reader.readline(), type=Question)
            answer = answers.get(question.word)
            if answer is not None:
                writer.write(answer(question.argument))
                await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(serve, path, limit=MAX_QUESTION_BYTES)


async def ask(path: Path, word: str, argument: str = "") -> bytes | None:
    """Returns the answer; None when nobody answers in time, or the answer is longer than any honest one."""
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(msgspec.json.encode(Question(word, argument)) + b"\n")
                await writer.drain()
                return await _read_bounded(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None


async def _read_bounded(reader: asyncio.StreamReader) -> bytes | None:
    parts: list[bytes] = []
    num_bytes = 0
    while part := await reader.read(65536):
        num_bytes += len(part)
        if num_bytes > MAX_ANSWER_BYTES:
            _log.error("a worker's answer is too long and was left out")
            return None
        parts.append(part)
    return b"".join(parts)
