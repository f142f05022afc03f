"""The trace of a request goes into vLLM where vLLM sends spans of its own, and nowhere else."""

import asyncio
from typing import Any

import msgspec
import pytest

from harness.llm_scene import LlmScene
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
