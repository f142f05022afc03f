"""The shipped checks against our own engine, by hand and without processes."""

import asyncio
from collections.abc import Callable

import pytest

from harness.engine_scene import EngineScene
from tidegate.engines.local.client import LocalEngine
from tidegate.testing.check_engine import CHECKS, Check
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock


class PairUnderTest(EngineScene):
    def __init__(self) -> None:
        self.pair = EnginePair(simulated_core, ManualClock())

    @property
    def engine(self) -> LocalEngine:
        return self.pair.engine

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(3000):
            if condition():
                return
            self.pair.step()
        raise AssertionError("the condition never held")

    async def lose(self) -> None:
        self.pair.lose()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_engine_pair_keeps_the_port(check: Check) -> None:
    under_test = PairUnderTest()
    asyncio.run(check(under_test))  # type: ignore[arg-type]
    assert under_test.pair.raised == []
