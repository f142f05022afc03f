"""Nothing between the processes grows without bound: each is pushed past its maximum."""

import asyncio
import sys

import pytest

from tidegate.engine.framing import encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import EngineReady, StepOutputs
from tidegate.engines.local import channel as channel_module
from tidegate.engines.local.channel import EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.process import KEPT_LINE_BYTES, KEPT_LINES, EngineProcess
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta

TALKER = f"""
import sys
for number in range(10 * {KEPT_LINES}):
    sys.stderr.write(f"{{number}} " + "x" * (3 * {KEPT_LINE_BYTES}) + "\\n")
sys.stderr.write("y" * (100 * {KEPT_LINE_BYTES}))
"""


@pytest.mark.process
def test_of_a_talkative_child_the_last_lines_are_kept_and_each_is_cut() -> None:  # OVL-8
    relayed: list[int] = []

    async def main() -> list[str]:
        process = await EngineProcess.start([sys.executable, "-c", TALKER], lambda line: relayed.append(len(line)))
        await process.wait()
        await process.aclose()
        return process.last_lines

    lines = asyncio.run(main())
    assert len(lines) == KEPT_LINES
    assert max(len(line) for line in lines) == KEPT_LINE_BYTES
    assert lines[-1] == "y" * KEPT_LINE_BYTES
    assert max(relayed) == KEPT_LINE_BYTES + 1


class Transport(asyncio.Transport):
    """Takes note of whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


def test_reading_pauses_while_much_waits_to_be_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:  # OVL-8
    monkeypatch.setattr(channel_module, "PAUSE_ABOVE_BYTES", 20_000)
    monkeypatch.setattr(channel_module, "RESUME_BELOW_BYTES", 5_000)
    later: list[object] = []
    transport = Transport()
    channel = EngineChannel(LocalEngine(lambda _: None), later.append)
    channel.connection_made(transport)
    channel.data_received(encode_frame(EngineReady(1, ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand"))))
    deltas = [TokenDelta(f"request {number}", 0, [1]) for number in range(4 * channel_module.SLICE_DELTAS)]
    frame = encode_frame(StepOutputs(1, deltas, EngineGauges()))
    while not transport.is_paused:
        channel.data_received(frame)
    while later:
        turn = later.pop()
        assert callable(turn)
        turn()
    assert not transport.is_paused
