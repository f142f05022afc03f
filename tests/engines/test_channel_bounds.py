"""EngineChannel and an engine's lines at their bounds: what waits on either side stays bounded, and nothing is lost."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable

import pytest

from tidegate.engine.framing import encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import EngineReady, StepOutputs
from tidegate.engines.local.channel import MAX_UNSENT_BYTES, PAUSE_ABOVE_BYTES, PROTOCOL, EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.process import KEPT_LINE_BYTES, KEPT_LINES, EngineProcess
from tidegate.errors import EngineUnavailable
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.requests import make_request

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand")


class CountingTransport(asyncio.Transport):
    """Never sends; says how much of it waits. Remembers each pause and resumption."""

    def __init__(self) -> None:
        super().__init__()
        self.num_unsent = 0
        self.turns: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.num_unsent += len(data)

    def get_write_buffer_size(self) -> int:
        return self.num_unsent

    def pause_reading(self) -> None:
        self.turns.append("pause")

    def resume_reading(self) -> None:
        self.turns.append("resume")


class Bench:
    """A connected engine whose far end does nothing by itself."""

    def __init__(self) -> None:
        self.raised: list[dict[str, object]] = []
        self.soon: deque[Callable[[], None]] = deque()
        self.engine = LocalEngine(self.raised.append)
        self.channel = EngineChannel(self.engine, self.soon.append)
        self.transport = CountingTransport()
        self.channel.connection_made(self.transport)
        self.channel.data_received(encode_frame(EngineReady(1, MODEL, PROTOCOL)))

    def turn(self) -> None:
        while self.soon:
            self.soon.popleft()()


def test_an_engine_that_does_not_read_gets_no_more_requests() -> None:  # OVL-8
    bench = Bench()
    bench.engine.submit(make_request("a", "hi"), RecordingSink())
    bench.turn()
    bench.transport.num_unsent = MAX_UNSENT_BYTES + 1
    with pytest.raises(EngineUnavailable):
        bench.engine.submit(make_request("b", "hi"), RecordingSink())
    assert bench.engine.num_open == 1
    bench.transport.num_unsent = MAX_UNSENT_BYTES
    bench.engine.submit(make_request("b", "hi"), RecordingSink())
    assert bench.engine.num_open == 2


def test_reading_pauses_while_too_much_waits_and_goes_on_later() -> None:  # OVL-8
    bench = Bench()
    sink = RecordingSink()
    bench.engine.submit(make_request("a", "hi"), sink)
    bench.turn()
    step = encode_frame(StepOutputs(1, [TokenDelta("a", 0, [7] * 40_000)], EngineGauges()))
    num_steps = 4 * PAUSE_ABOVE_BYTES // len(step)
    assert num_steps > 32, "more than one slice"
    bench.channel.data_received(step * num_steps)
    assert bench.transport.turns == ["pause"]
    bench.turn()
    assert bench.transport.turns == ["pause", "resume"]
    assert len(sink.token_ids[0]) == 40_000 * num_steps, "nothing is lost"
    assert bench.raised == []


def lines_of(program: str) -> tuple[list[str], list[bytes]]:
    """Runs a child and returns what was kept of its lines, and what was passed on to the log."""
    passed: list[bytes] = []

    async def run() -> list[str]:
        child = await EngineProcess.start([sys.executable, "-c", program], passed.append)
        await child.wait()
        kept = child.last_lines
        await child.aclose()
        return kept

    return asyncio.run(run()), passed


def test_only_the_last_lines_of_an_engine_are_kept() -> None:  # OVL-8
    kept, passed = lines_of(f"import sys; [print(i, file=sys.stderr) for i in range({3 * KEPT_LINES})]")
    assert kept == [str(i) for i in range(2 * KEPT_LINES, 3 * KEPT_LINES)]
    assert len(passed) == 3 * KEPT_LINES, "the log gets all of them"


def test_a_line_without_end_is_cut() -> None:  # OVL-8
    kept, passed = lines_of(f"import sys; sys.stderr.write('x' * {100 * KEPT_LINE_BYTES})")
    assert kept == ["x" * KEPT_LINE_BYTES]
    assert passed == [b"x" * KEPT_LINE_BYTES + b"\n"]
