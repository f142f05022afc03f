"""A request's trace comes back from a real vLLM as a span of vLLM's own, below the caller's."""

import sys
from pathlib import Path

from real_scene import RealScene, score

from tidegate.inference.hop import HopLabels

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from harness.otlp_collector import OtlpCollector

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


async def check_trace(scene: RealScene, collector: OtlpCollector) -> None:
    """vLLM's span of the request hangs below the span that the request came with."""
    hop = HopLabels(f"00-{TRACE}-{SPAN}-01", "congo=t61", "mine")
    await score(scene, scene.make_request("traced", hop=hop))
    await scene.until(lambda: any(span.name == "llm_request" for span in collector.of(TRACE)))
    [span] = [span for span in collector.of(TRACE) if span.name == "llm_request"]
    assert (span.parent, span.state) == (SPAN, "congo=t61"), span
