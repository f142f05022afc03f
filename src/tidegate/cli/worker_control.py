"""How the first process asks its workers: one word on a Unix socket, one answer until the end of the stream."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

Answer = Callable[[], bytes]
MAX_WORD_BYTES = 64
ASK_TIMEOUT_S = 5.0


async def answer_questions(path: Path, answers: dict[str, Answer]) -> asyncio.Server:
    """Listens at `path` until the returned server is closed. An unknown word gets no answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.LimitOverrunError, ValueError):
            word = (await reader.readline()).decode("ascii", "replace").strip()
            if word in answers:
                writer.write(answers[word]())
                await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(serve, path, limit=MAX_WORD_BYTES)


async def ask(path: Path, word: str) -> bytes | None:
    """Returns the answer to `word`; None when nobody answers in time."""
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(word.encode() + b"\n")
                await writer.drain()
                return await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
