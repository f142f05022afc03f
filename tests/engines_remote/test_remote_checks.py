"""The shipped checks of the `Engine` port against the adapters of remote engines, before stand-ins of their protocols.

The stand-ins are ours: that a real vLLM or SGLang speaks as they do is not proved here.
"""

import asyncio
from collections.abc import Callable

import pytest

from harness.remote_scene import RemoteScene
from harness.sglang_speech import SglangSpeech
from harness.vllm_speech import VllmSpeech
from tidegate.engines.sglang.sglang_kind import SglangKind
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.testing.check_engine import CHECKS, Check

SCENES: dict[str, Callable[[], RemoteScene]] = {
    "vllm_http": lambda: RemoteScene(VllmSpeech(), VllmKind),
    "sglang": lambda: RemoteScene(SglangSpeech(), SglangKind),
    "sglang_incremental": lambda: RemoteScene(SglangSpeech(is_incremental=True), SglangKind),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SCENES)
def test_an_adapter_keeps_the_port(check: Check, name: str) -> None:
    async def run() -> None:
        async with SCENES[name]() as scene:
            await check(scene)

    asyncio.run(run())
