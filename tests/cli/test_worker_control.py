"""Questions between server processes, and their bounds."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tidegate.cli import worker_control
from tidegate.cli.worker_control import MAX_QUESTION_BYTES, answer_questions, ask


def run(tmp_path: Path, body: Callable[[Path], Awaitable[None]]) -> None:
    path = tmp_path / "control.sock"
    answers = {"echo": lambda argument: argument.encode(), "long": lambda argument: b"x" * int(argument)}

    async def main() -> None:
        server = await answer_questions(path, answers)
        async with server:
            await body(path)

    asyncio.run(main())


def test_a_question_is_answered_with_its_argument_and_an_unknown_one_with_nothing(tmp_path: Path) -> None:
    async def body(path: Path) -> None:
        assert await ask(path, "echo", 'a "quoted"\nline') == b'a "quoted"\nline'
        assert await ask(path, "echo") == b""
        assert await ask(path, "what") == b""
        assert await ask(path.with_name("nobody.sock"), "echo") is None

    run(tmp_path, body)


def test_an_answer_beyond_the_bound_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # OVL-8
    monkeypatch.setattr(worker_control, "MAX_ANSWER_BYTES", 100_000)

    async def body(path: Path) -> None:
        assert await ask(path, "long", "100000") == b"x" * 100_000
        assert await ask(path, "long", "100001") is None

    run(tmp_path, body)


@pytest.mark.parametrize("line", [b"garbage\n", b"[]\n", b"\n", b"x" * (2 * MAX_QUESTION_BYTES), b"[1,2]\n"])
def test_what_is_no_question_gets_no_answer(tmp_path: Path, line: bytes) -> None:  # OVL-8
    async def body(path: Path) -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(line)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert await ask(path, "echo", "still here") == b"still here"

    run(tmp_path, body)
