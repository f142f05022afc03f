import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.engine.framing import (
    MAX_FRAME_BYTES,
    FrameDecoder,
    FramingError,
    LimitError,
    decode_command,
    decode_report,
    encode_frame,
)
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    Command,
    EngineFault,
    EngineReady,
    HoldRequest,
    Ping,
    Pong,
    Report,
    StepOutputs,
)
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

COMMANDS: list[Command] = [
    AddRequest(InferenceRequest("r1", b"\x01\x00\x00\x00", SamplingParams(seed=2**64 - 1), StopRules(max_tokens=3))),
    AbortRequest("r1"),
    AbortRequest("r1", 2),
    HoldRequest("r1", True),
    Ping(7),
]
REPORTS: list[Report] = [
    EngineReady(1, ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "simulated")),
    StepOutputs(3, [], EngineGauges(num_running=2)),
    StepOutputs(
        3,
        [
            TokenDelta("r1", 0, [5, 6]),
            TokenDelta("r2", 1, [], EngineFinish.FAILED, error="no"),
            TokenDelta("r3", 0, [1], logprobs=[TokenLogprob(1, -0.5, ((1, -0.5),))], prompt_logprobs=[None]),
        ],
        EngineGauges(),
    ),
    EngineFault("gone"),
    Pong(7, EngineGauges()),
]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


@pytest.mark.parametrize("command", COMMANDS, ids=repr)
def test_a_command_survives_the_journey(command: Command) -> None:
    (payload,) = FrameDecoder().feed(encode_frame(command))
    assert decode_command(payload) == command


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_survives_the_journey(report: Report) -> None:
    (payload,) = FrameDecoder().feed(encode_frame(report))
    assert decode_report(payload) == report


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 300), max_size=12), st.integers(0, 6))
def test_every_split_gives_the_same_frames(payloads: list[bytes], places: list[int], num_missing: int) -> None:
    stream = b"".join(len(payload).to_bytes(4, "little") + payload for payload in payloads)
    stream = stream[: len(stream) - num_missing]
    whole = [bytes(frame) for frame in FrameDecoder().feed(stream)]
    decoder = FrameDecoder()
    split = [bytes(frame) for part in cut(stream, places) for frame in decoder.feed(part)]
    assert split == whole
    assert whole == payloads[: len(whole)]
    assert len(stream) == decoder.num_pending_bytes + sum(4 + len(frame) for frame in whole)


@given(
    st.lists(st.binary(max_size=9), max_size=4), st.lists(st.integers(0, 60), max_size=8), st.integers(11, 2**32 - 1)
)
def test_every_split_finds_a_hostile_length_after_the_same_frames(
    payloads: list[bytes], places: list[int], num_bytes: int
) -> None:
    stream = b"".join(len(payload).to_bytes(4, "little") + payload for payload in payloads)
    stream += num_bytes.to_bytes(4, "little") + b"rest"
    decoder = FrameDecoder(max_frame_bytes=10)
    frames: list[memoryview] = []
    caught = None
    for part in cut(stream, places):
        try:
            frames += decoder.feed(part)
        except LimitError as error:
            frames += error.frames
            caught = error
    assert caught is not None
    assert (caught.num_bytes, caught.max_bytes) == (num_bytes, 10)
    assert [bytes(frame) for frame in frames] == payloads
    assert decoder.num_pending_bytes < 4


def test_a_frame_of_exactly_the_bound_is_whole_and_one_more_byte_is_not() -> None:
    assert FrameDecoder(max_frame_bytes=3).feed(b"\x03\0\0\0abc") == [b"abc"]
    with pytest.raises(LimitError, match="4 bytes, at most 3"):
        FrameDecoder(max_frame_bytes=3).feed(b"\x04\0\0\0")


def test_a_message_above_the_bound_is_not_sent() -> None:
    with pytest.raises(LimitError):
        encode_frame(EngineFault("x" * (MAX_FRAME_BYTES + 1)))


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=60), st.sampled_from(COMMANDS + REPORTS).map(msgspec.msgpack.encode)), st.data())
def test_garbage_is_a_framing_error_and_nothing_else(payload: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(payload)))
    payload = payload[:at] + data.draw(st.binary(max_size=3)) + payload[at + 1 :]
    for decode in (decode_command, decode_report):
        try:
            decode(payload)
        except FramingError:
            continue


@pytest.mark.parametrize("payload", [b"", b"\x91" * 100_000, b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x92\x0a\x01"])
def test_bad_payloads_are_refused(payload: bytes) -> None:
    with pytest.raises(FramingError):
        decode_command(payload)
    with pytest.raises(FramingError):
        decode_report(payload)


def test_fields_that_a_newer_peer_appends_are_ignored() -> None:
    assert decode_command(msgspec.msgpack.encode([4, 9, "new"])) == Ping(9)
