"""EngineChannel at its bound: an engine that does not read is asked for nothing more, until it reads again."""

import asyncio
from collections import deque
from collections.abc import Callable

import pytest

from tidegate.engine.framing import encode_frame
from tidegate.engine.messages import EngineReady
from tidegate.engines.local.channel import MAX_UNSENT_BYTES, PROTOCOL, EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.errors import EngineUnavailable
from tidegate.inference.model_info import ModelInfo
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.requests import make_request

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand")


class CountingTransport(asyncio.Transport):
    """Never sends; says how much of it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.num_unsent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.num_unsent += len(data)

    def get_write_buffer_size(self) -> int:
        return self.num_unsent


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
