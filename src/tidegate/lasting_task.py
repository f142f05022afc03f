"""Tasks that last as long as what they belong to: one that ends by a fault is reported at once, and not lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def start_lasting(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts `work` on the running event loop. Its fault goes to the loop's exception handler when it happens."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(_report)
    return task


async def end_task(task: asyncio.Task[None] | None) -> None:
    """Cancels a task and waits until it has ended, however it does. None and tasks that have ended are let alone."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (fault := task.exception()) is not None:
        context = {"message": f"the task {task.get_name()} ended by a fault", "exception": fault}
        task.get_loop().call_exception_handler(context)
