"""Waiting for an event, but not for ever."""

import asyncio
import contextlib


async def wait_event(event: asyncio.Event, timeout_s: float) -> bool:
    """Waits until the event is set, for `timeout_s` at most; says whether it is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):  # wait_for may swallow the caller's own end
            await event.wait()
    return event.is_set()
