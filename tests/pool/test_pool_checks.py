"""The shipped checks against pools of one to three engines: all well, one dead, one that dies while the check runs."""

import asyncio
from collections.abc import Callable

import pytest

from harness.engine_scene import EngineScene
from harness.pool_scene import PoolScene
from tidegate.engines.pool.pool import EnginePool
from tidegate.testing.check_engine import CHECKS, Check, check_abort_before_start_ends


class PoolUnderTest(EngineScene):
    """With `is_dying` the first engine is lost between each submit and its first step: nothing was sent then."""

    def __init__(self, num_engines: int, *, down: str = "", is_dying: bool = False) -> None:
        self.scene = PoolScene(num_engines, down=down)
        self._is_dying = is_dying

    @property
    def engine(self) -> EnginePool:
        return self.scene.pool

    async def until(self, condition: Callable[[], bool]) -> None:
        if self._is_dying and self.scene.requests()["a"]:
            self._is_dying = False
            self.scene.pairs["a"].lose()
        for _ in range(3000):
            if condition():
                return
            self.scene.step()
        raise AssertionError("the condition never held")

    async def lose(self) -> None:
        for pair in self.scene.pairs.values():
            pair.lose()


POOLS: dict[str, Callable[[], PoolUnderTest]] = {
    "one engine": lambda: PoolUnderTest(1),
    "two engines": lambda: PoolUnderTest(2),
    "three engines": lambda: PoolUnderTest(3),
    "two engines, one dead": lambda: PoolUnderTest(2, down="a"),
    "three engines, one dead": lambda: PoolUnderTest(3, down="b"),
    "two engines, one dies": lambda: PoolUnderTest(2, is_dying=True),
    "three engines, one dies": lambda: PoolUnderTest(3, is_dying=True),
}


SCENES = [
    pytest.param(check, make, id=f"{check.__name__}-{name}")
    for name, make in POOLS.items()
    for check in CHECKS
    # a request that was aborted and then lost may end either way, here as with one engine
    if check is not check_abort_before_start_ends or "dies" not in name
]


@pytest.mark.parametrize(("check", "make"), SCENES)
def test_a_pool_keeps_the_port(check: Check, make: Callable[[], PoolUnderTest]) -> None:
    under_test = make()
    asyncio.run(check(under_test))  # type: ignore[arg-type]
    asyncio.run(under_test.lose())
    under_test.scene.check_rest()


def test_an_engine_dies_in_every_check_that_says_so() -> None:
    under_test = PoolUnderTest(2, is_dying=True)
    asyncio.run(CHECKS[0](under_test))  # type: ignore[arg-type]
    lost = next(one for one in under_test.scene.pool.members() if one.name == "a")
    assert (lost.status.is_ready, lost.num_lost, lost.num_moved) == (False, 1, 1)
