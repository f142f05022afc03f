"""The shipped checks of the `Engine` port against a host and a link, over a way that keeps calls, or loses them."""

import asyncio
from random import Random

import pytest

from harness.host_scene import HostScene
from tidegate.testing.check_engine import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_host_behind_a_link_keeps_the_port(check: Check) -> None:
    async def run() -> None:
        async with HostScene() as scene:
            await check(scene)

    asyncio.run(run())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_port_is_kept_where_calls_get_lost_and_come_twice_or_late(check: Check) -> None:
    async def run() -> None:
        async with HostScene(Random(2)) as scene:
            await check(scene)

    asyncio.run(run())
