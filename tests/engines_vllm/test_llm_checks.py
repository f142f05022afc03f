"""The shipped checks of the `Engine` port against the adapter of vLLM in process, over a stand-in for its library.

The stand-in is ours: the real one is checked by `make vllm-check`.
"""

import asyncio

import pytest

from harness.llm_scene import LlmScene
from tidegate.testing.check_engine import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_adapter_keeps_the_port(check: Check) -> None:
    async def run() -> None:
        async with LlmScene() as scene:
            await check(scene)

    asyncio.run(run())
