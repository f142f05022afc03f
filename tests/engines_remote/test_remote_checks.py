"""The shipped checks of the `Engine` port against the adapters of remote engines, before stand-ins of their protocols.

The stand-ins are ours: that a real vLLM or SGLang speaks as they do is not proved here.
"""

import asyncio

import pytest

from harness.remote_scene import RemoteScene
from harness.vllm_speech import VllmSpeech
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.testing.check_engine import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_vllm_over_http_keeps_the_port(check: Check) -> None:
    async def run() -> None:
        async with RemoteScene(VllmSpeech(), VllmKind) as scene:
            await check(scene)

    asyncio.run(run())
