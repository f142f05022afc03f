"""A call that blocks, on a thread that nobody waits for at the end of the program, awaited on the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def call_aside(call: Callable[[], Result], name: str) -> "asyncio.Future[Result]":
    """Returns the future of the call's result. Cancelling it does not stop the call."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised if isinstance(raised, Exception) else RuntimeError(f"the call ended with {raised!r}")
        with contextlib.suppress(RuntimeError):  # the loop has gone
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
