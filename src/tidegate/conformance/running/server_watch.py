"""ServerWatch: whether there still is a server, asked when an exchange makes one doubt it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tidegate.conformance.ask import Ask, Manner
from tidegate.conformance.wire.exchange import Ending, Exchange

PATIENCE_S = 5.0
"""How long a server that restarts is waited for."""
ANSWER_S = 10.0
PAUSE_S = 0.25
_DOUBTFUL = (Ending.NO_CONNECTION, Ending.RESET, Ending.CUT, Ending.TIMED_OUT)


def is_doubtful(exchange: Exchange, ask: Ask) -> bool:
    """Whether the exchange might have ended so because the server is gone. A case's own timeout says nothing."""
    if exchange.ending is Ending.TIMED_OUT and ask.manner.timeout_s is not None:
        return False
    return exchange.ending in _DOUBTFUL


class ServerWatch:
    """Of one run. Once the server is gone, it stays gone."""

    def __init__(
        self,
        asking: Callable[[Ask], Awaitable[Exchange]],
        patience_s: float = PATIENCE_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._asking = asking
        self._patience_s = patience_s
        self._question = Ask(name="is_there", method="GET", path="/models", manner=Manner(timeout_s=answer_s))
        self._lock = asyncio.Lock()
        self.gone = ""
        """How it is gone, in words; empty: it is there."""

    async def look(self) -> str:
        """Returns how the server is gone, after waiting for it; empty where it answers anything at all."""
        async with self._lock:
            end = time.monotonic() + self._patience_s
            num_silent = 0
            while not self.gone:
                exchange = await self._asking(self._question)
                num_silent += exchange.ending is Ending.TIMED_OUT
                if exchange.ending not in (Ending.NO_CONNECTION, Ending.TIMED_OUT) or exchange.pieces:
                    break
                if time.monotonic() >= end or num_silent > 1:
                    self.gone = f"the server is gone: {exchange.ending.value} {exchange.detail}".rstrip()
                    break
                await asyncio.sleep(min(PAUSE_S, self._patience_s))
            return self.gone
