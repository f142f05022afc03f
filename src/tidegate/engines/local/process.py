"""EngineProcess: one child, from its start to its end, with the last words it wrote on standard error."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tidegate.engine.options import EngineOptions, encode_options

KEPT_LINES = 50
KEPT_LINE_BYTES = 4096


def engine_command(options: EngineOptions, socket_path: Path, epoch: int) -> list[str]:
    """Returns the command line that starts an engine. `-P`: nothing in the working folder shadows our package."""
    return [
        *(sys.executable, "-P", "-m", "tidegate.engine_process"),
        *("--socket", os.fspath(socket_path)),
        *("--epoch", str(epoch)),
        *("--backend", options.backend),
        *("--options", encode_options(options)),
        *("--parent-id", str(os.getpid())),
    ]


class EngineProcess:
    """Made by `start`. Standard input is a pipe that is never written: its end tells the child that we are gone."""

    def __init__(self, process: Process, write_log: Callable[[bytes], None]) -> None:
        self._process = process
        self._write_log = write_log
        self._lines: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._reader = asyncio.create_task(self._read_stderr(), name="engine stderr")

    @classmethod
    async def start(cls, command: list[str], write_log: Callable[[bytes], None]) -> "EngineProcess":
        """Starts the child. `write_log` gets each line that it writes on standard error, with its line feed.

        The child gets a session of its own, so that a terminal's Ctrl-C is for us alone. Raises OSError.
        """
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE, start_new_session=True
        )
        return cls(process, write_log)

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def last_lines(self) -> list[str]:
        """The last lines that the child wrote on standard error."""
        return [line.decode("utf-8", "replace").rstrip("\n") for line in self._lines]

    async def wait(self) -> int:
        """Waits for the end and for the last line; returns the exit code, or minus the signal. Cancelling is safe."""
        code = await self._process.wait()
        # A grandchild may hold the pipe open; what it writes is not ours to wait for.
        await asyncio.wait([self._reader], timeout=1.0)
        return code

    def terminate(self) -> None:
        """Asks the child to end. Without effect when it has."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Ends the child. Without effect when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self, grace_s: float) -> int:
        """Asks the child to end, and kills it after `grace_s`; returns the exit code."""
        self.terminate()
        try:
            async with asyncio.timeout(grace_s):  # wait_for may swallow the caller's own end
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()

    async def aclose(self) -> None:
        """Kills the child if it lives, and gives back pipes and tasks. Idempotent."""
        self.kill()
        await self.wait()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        if stream is None:
            return
        line = b""
        while data := await stream.read(65536):
            *lines, line = (line + data).split(b"\n")
            for whole in lines:
                self._keep(whole)
            # Nothing of a line without an end is kept beyond the bound.
            line = line[:KEPT_LINE_BYTES]
        if line:
            self._keep(line)

    def _keep(self, line: bytes) -> None:
        kept = line[:KEPT_LINE_BYTES] + b"\n"
        self._lines.append(kept)
        self._write_log(kept)
