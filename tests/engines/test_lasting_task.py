"""A task that should last is reported when a fault ends it, and its end leaves nothing."""

import asyncio
from typing import Any

import pytest

from tidegate.lasting_task import end_task, start_lasting
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.virtual_loop import VirtualLoop

BROKEN = RuntimeError("broken")


async def break_later() -> None:
    await asyncio.sleep(1.0)
    raise BROKEN


async def end_later() -> None:
    await asyncio.sleep(1.0)


async def last() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("work", "told"), [(break_later, [BROKEN]), (end_later, []), (last, [])], ids=["breaks", "ends", "lasts"]
)
def test_a_fault_is_told_when_it_happens_and_no_other_end(work: Any, told: list[Exception]) -> None:
    reports: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        task = start_lasting(work(), "leases")
        await asyncio.sleep(2.0)
        assert [report["exception"] for report in reports] == told
        assert all("leases" in report["message"] for report in reports)
        await end_task(task)
        await end_task(task)
        await end_task(None)
        assert task.done()
        assert len(reports) == len(told)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(ManualClock())) as runner:
        runner.run(main())
