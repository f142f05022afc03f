"""One watcher on `receive` for each request: the only way in which a client that leaves is seen.

Servers let `send` return silently after a disconnect, so a writer alone would write into nothing until its end.
"""

import asyncio
from collections.abc import Callable

from tidegate.http.asgi import Receive


class DisconnectWatch:
    """Calls `on_gone` once when the client has gone, unless it is stopped before."""

    def __init__(self, receive: Receive, on_gone: Callable[[], None]) -> None:
        # `receive` may return an awaitable that is no coroutine: it cannot be made a task by itself.
        self._on_gone: Callable[[], None] | None = on_gone
        self._task = asyncio.get_running_loop().create_task(self._run(receive))

    def stop(self) -> None:
        self._on_gone = None
        self._task.cancel()

    async def _run(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_gone = self._on_gone
        if on_gone is not None:
            on_gone()
