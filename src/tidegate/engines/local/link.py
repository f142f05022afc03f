"""EngineLink: keeps a LocalEngine connected to whatever engine listens at a path.

A server process that supervises no engine needs only this. The engine listens before it has loaded its model, so a
connection stands early and the greeting on it says when work may begin.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tidegate.engines.local.channel import EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.lasting_task import end_task, start_lasting

DIAL_INTERVAL_S = 0.05
LONGEST_PATH_BYTES = 100
"""sockaddr_un holds 104 bytes on some systems, 108 on others."""


class EngineLink:
    """Dials, waits for the end of the connection, and dials again, until `aclose`. `on_end` hears of each end."""

    def __init__(
        self, engine: LocalEngine, socket_path: Path, on_end: Callable[[EngineChannel], None] | None = None
    ) -> None:
        """Raises ValueError when the path is too long for a socket."""
        if len(os.fsencode(socket_path)) > LONGEST_PATH_BYTES:
            raise ValueError(
                f"socket path {socket_path} is longer than {LONGEST_PATH_BYTES} bytes: use a shorter folder"
            )
        self._engine = engine
        self._path = socket_path
        self._on_end = on_end
        self._channel: EngineChannel | None = None
        self._is_down = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to dial. Call once, on the event loop."""
        self._task = start_lasting(self._run(), "engine link")

    async def aclose(self) -> None:
        """Hangs up: open sinks fail. Idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        await end_task(task)
        if self._channel is not None:
            self._channel.close()
            await self._is_down.wait()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._is_down.clear()
            channel = EngineChannel(self._engine, loop.call_soon, self._is_down.set)
            try:
                await loop.create_unix_connection(partial(_same, channel), os.fspath(self._path))
            except OSError:
                await asyncio.sleep(DIAL_INTERVAL_S)
                continue
            self._channel = channel
            await self._is_down.wait()
            self._channel = None
            if self._on_end is not None:
                self._on_end(channel)


def _same(channel: EngineChannel) -> EngineChannel:
    return channel
