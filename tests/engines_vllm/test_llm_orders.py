"""What is told to vLLM beside the fields of sampling: trace, salt of the cache, priority."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from harness.llm_scene import PLAN, LlmScene
from harness.llm_stand_in import StandInLibrary
from tidegate.inference.hop import HopLabels
from tidegate.testing.check_engine import RecordingSink

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CASES: dict[str, tuple[bool, HopLabels | None, dict[str, str] | None]] = {
    "both": (
        True,
        HopLabels(PARENT, "congo=t61", "mine"),
        {"traceparent": PARENT, "tracestate": "congo=t61"},
    ),
    "no state": (True, HopLabels(PARENT), {"traceparent": PARENT}),
    "no trace": (True, HopLabels(client_id="mine"), None),
    "no labels": (True, None, None),
    "no collector": (False, HopLabels(PARENT, "congo=t61", "mine"), None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_choice_carries_the_trace_into_an_engine_that_has_a_collector(case: Any) -> None:
    has_tracing, hop, told = case
    library = StandInLibrary()
    library.has_tracing = has_tracing

    async def run() -> None:
        async with LlmScene(library) as scene:
            sink = RecordingSink(num_choices=2)
            request = msgspec.structs.replace(scene.make_request("r", num_choices=2), hop=hop)
            scene.engine.submit(request, sink)
            await scene.until(lambda: sink.has_ended)
            assert sink.error is None
            traces = library.llm.traces
            assert {name: traces[name] for name in ("r-0", "r-1")} == {"r-0": told, "r-1": told}

    asyncio.run(run())


@pytest.mark.parametrize("has_priorities", [True, False])
def test_salt_and_priority_reach_vllm_where_it_keeps_them(has_priorities: bool) -> None:
    async def run() -> list[tuple[str, Any, Any, int]]:
        async with LlmScene(plan=replace(PLAN, has_priorities=has_priorities)) as scene:
            for name, fields in {"both": {"cache_salt": b"\1\xff", "priority": -5}, "neither": {}}.items():
                sink = RecordingSink()
                scene.engine.submit(msgspec.structs.replace(scene.make_request(name), **fields), sink)
                await scene.until(lambda sink=sink: sink.has_ended)  # type: ignore[misc]
            return scene.library.llm.requests

    requests = asyncio.run(run())
    assert [(name, prompt["cache_salt"], priority) for name, prompt, _, priority in requests] == [
        ("tidegate-trial", None, 1 if has_priorities else 0),
        ("both-0", "01ff", -5 if has_priorities else 0),
        ("neither-0", None, 0),
    ]
