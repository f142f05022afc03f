"""SideOrders: orders whose answer nobody waits for, such as the abort of a request. Bounded; best effort.

An abort is carried out by closing the exchange; the order only makes the engine hear of it sooner.
"""

import asyncio
import contextlib

from tidegate.engines.remote.ask import Ask, EngineAway
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.dialect import Order

MAX_SIDE_ORDERS = 256
SIDE_TIMEOUT_S = 5.0


class SideOrders:
    """Belongs to one event loop."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._ask = Ask(pool, SIDE_TIMEOUT_S)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def num_open(self) -> int:
        return len(self._tasks)

    def send(self, order: Order) -> None:
        """Sends it unless too many are on their way."""
        if len(self._tasks) >= MAX_SIDE_ORDERS:
            return
        task = asyncio.create_task(self._send(order), name="order to the engine")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop(self) -> None:
        """Gives up those that are on their way."""
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        """As `drop`, and waits."""
        self.drop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, order: Order) -> None:
        with contextlib.suppress(EngineAway):
            await self._ask.post(order.path, order.body)
