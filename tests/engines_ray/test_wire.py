"""What crosses between a server and an engine actor: every message comes out as it went in, and nothing else does."""

import msgspec
import pytest

from tidegate.engine.framing import MAX_FRAME_BYTES, FramingError, LimitError
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    CacheFlushed,
    FlushCache,
    HoldRequest,
    Ping,
    Pong,
    StepOutputs,
)
from tidegate.engines.ray.carried_errors import CARRIED, from_wire, to_wire
from tidegate.engines.ray.wire import (
    EngineAway,
    EventBatch,
    RequestFailed,
    decode_commands,
    decode_events,
    encode_command,
    encode_commands,
    encode_events,
)
from tidegate.errors import CapacityFault, EngineLost, InternalError, LimitFact, RateLimited, ServeError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.testing.requests import make_request

COMMANDS = (AddRequest(make_request("a", "hi")), AbortRequest("a"), HoldRequest("a", held=True), Ping(3), FlushCache(4))
REPORTS = (
    StepOutputs(2, [TokenDelta("a", 0, [1, 2], EngineFinish.EOS)], EngineGauges(num_running=1)),
    CacheFlushed(4, 7),
    Pong(3, EngineGauges()),
    RequestFailed("a", "EngineLost", "gone"),
    EngineAway("killed"),
)


def test_commands_come_out_as_they_went_in() -> None:
    data = encode_commands("s", 5, [encode_command(one) for one in COMMANDS])
    batch = decode_commands(data)
    assert (batch.session, batch.number, tuple(batch.commands)) == ("s", 5, COMMANDS)


def test_reports_come_out_as_they_went_in() -> None:
    batch = EventBatch("boot", 1, 5, list(REPORTS), "it starts", is_draining=True, has_failed=True)
    assert decode_events(encode_events(batch)) == batch


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x90", msgspec.msgpack.encode(["s", "one", []])], ids=repr)
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(FramingError):
        decode_commands(data)
    with pytest.raises(FramingError):
        decode_events(data)


def test_a_command_is_no_longer_than_a_frame() -> None:
    request = msgspec.structs.replace(make_request("a", "hi"), prompt=bytes(MAX_FRAME_BYTES))
    with pytest.raises(LimitError):
        encode_command(AddRequest(request))


@pytest.mark.parametrize("kind", CARRIED.values(), ids=CARRIED)
def test_an_error_of_a_request_comes_out_as_what_it_was(kind: type[ServeError]) -> None:
    limit = LimitFact("context_length", 10, 11, "request")
    if issubclass(kind, CapacityFault):
        error: ServeError = kind("words", retry_after_s=7, limit=limit)
    else:
        error = kind("words", param="prompt", limit=limit)
    carried = from_wire(to_wire("a", error))
    assert type(carried) is kind
    assert vars(carried) == vars(error)


@pytest.mark.parametrize("error", [RateLimited("key"), RuntimeError("/a/path"), type("Lost", (EngineLost,), {})("x")])
def test_an_error_that_is_not_a_requests_says_nothing_of_itself(error: Exception) -> None:
    carried = from_wire(to_wire("a", error))
    assert isinstance(carried, InternalError)
    assert carried.message == "An internal error."
