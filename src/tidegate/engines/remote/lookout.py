"""Lookout: when a watch looks at its engine, and whether the engine has been silent for too long."""

import asyncio

from tidegate.engines.life.wait_event import wait_event
from tidegate.engines.remote.client import RemoteEngine


class Lookout:
    """Belongs to the event loop that it is made on. `stall_timeout_s`: how long all that is open may be silent."""

    def __init__(self, engine: RemoteEngine, interval_s: float, stall_timeout_s: float) -> None:
        self._engine = engine
        self._interval_s = interval_s
        self._stall_timeout_s = stall_timeout_s
        self._trouble = asyncio.Event()
        engine.on_trouble.append(self._trouble.set)

    @property
    def has_trouble(self) -> bool:
        """Whether something went wrong, or somebody called, since the last wait began."""
        return self._trouble.is_set()

    def call(self) -> None:
        """Has the engine looked at now."""
        self._trouble.set()

    async def wait(self) -> bool:
        """Waits for the next look; says whether there is trouble."""
        self._trouble.clear()
        return await wait_event(self._trouble, self._interval_s)

    def finds_stall(self) -> bool:
        """Whether the engine owes something and has been silent for too long. Counts it."""
        since = self._engine.silent_since
        is_stalled = since is not None and asyncio.get_running_loop().time() - since > self._stall_timeout_s
        self._engine.num_stalls += is_stalled
        return is_stalled
