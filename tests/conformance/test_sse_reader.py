"""SseReader: the standard's events at every split of the bytes, and every deviation from our framing by name."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.conformance.wire.sse_reader import Deviation, SseEvent, SseReader

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "sse" / "vectors.json").read_text("utf-8"))
GOOD = 'data: {"a":"é"}\n\n: ping\n: ping\ndata: {}\n\n: ping\ndata: [DONE]\n\n'.encode()


def read(pieces: list[bytes]) -> tuple[list[SseEvent], SseReader]:
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    reader.finish()
    return events, reader


def deviations(stream: bytes) -> list[Deviation]:
    return [finding.deviation for finding in read([stream])[1].findings]


def two_way_splits(stream: bytes) -> list[list[bytes]]:
    return [[stream[:cut], stream[cut:]] for cut in range(len(stream) + 1)] + [[bytes([byte]) for byte in stream]]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_vector_gives_its_events_at_every_split(vector: dict[str, object]) -> None:
    stream = str(vector["stream"]).encode()
    whole, whole_reader = read([stream])
    assert [{"type": event.type, "data": event.data, "id": event.id} for event in whole] == vector["events"]
    assert whole_reader.retry_ms == vector.get("retry")
    for pieces in two_way_splits(stream):
        events, reader = read(pieces)
        assert (events, reader.findings, reader.retry_ms) == (whole, whole_reader.findings, whole_reader.retry_ms)


ALPHABET = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"data",
        b":",
        b": ",
        b"x",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xa9",
        b"id",
        b"event",
        b"\0",
    ]
)


@given(st.lists(ALPHABET, max_size=30), st.lists(st.integers(0, 60), max_size=5))
def test_any_fragmentation_gives_the_same_events_and_findings(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole, whole_reader = read([stream])
    events, reader = read([stream[start:end] for start, end in pairwise(edges)])
    assert (events, reader.findings) == (whole, whole_reader.findings)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(stream: bytes) -> None:
    read([stream])


def test_a_stream_in_the_contracts_framing_has_no_findings() -> None:
    events, reader = read([GOOD])
    assert [event.data for event in events] == ['{"a":"é"}', "{}", "[DONE]"]
    assert [GOOD[event.offset :][:5] for event in events] == [b"data:"] * 3
    assert reader.findings == []
    assert reader.is_done


D = Deviation
BAD = {
    "mark": ("\ufeffdata: {}\n\n", [D.BYTE_ORDER_MARK]),
    "crlf": ("data: {}\r\n\r\n", [D.CARRIAGE_RETURN, D.CARRIAGE_RETURN]),
    "cr": ("data: {}\r\n\n", [D.CARRIAGE_RETURN]),
    "nul": (": \0\n", [D.NUL]),
    "event": ("event: x\ndata: {}\n\n", [D.OTHER_FIELD]),
    "id": ("id: 1\ndata: {}\n\n", [D.OTHER_FIELD]),
    "retry": ("retry: 1\ndata: {}\n\n", [D.OTHER_FIELD]),
    "unknown field": ("Data: {}\ndata: {}\n\n", [D.OTHER_FIELD]),
    "no space": ("data:{}\n\n", [D.NO_SPACE]),
    "two spaces": ("data:  {}\n\n", [D.NO_SPACE]),
    "no colon": ("data\n\n", [D.NO_SPACE, D.NOT_JSON]),
    "two lines": ('data: {"a":\ndata: 1}\n\n', [D.SEVERAL_DATA_LINES]),
    "line separator": ('data: {"a":"\u2028"}\n\n', [D.UNESCAPED_LINE_BREAK]),
    "paragraph separator": ('data: {"a":"\u2029"}\n\n', [D.UNESCAPED_LINE_BREAK]),
    "next line": ('data: {"a":"\x85"}\n\n', [D.UNESCAPED_LINE_BREAK]),
    "comment inside": ("data: {}\n: ping\n\n", [D.COMMENT_INSIDE_EVENT, D.BLANK_AFTER_COMMENT]),
    "heartbeat with a blank line": (": ping\n\ndata: {}\n\n", [D.BLANK_AFTER_COMMENT]),
    "blank line": ("data: {}\n\n\n", [D.EMPTY_EVENT]),
    "leading blank line": ("\ndata: {}\n\n", [D.EMPTY_EVENT]),
    "array": ("data: []\n\n", [D.NOT_JSON]),
    "not a number": ('data: {"a":NaN}\n\n', [D.NOT_JSON]),
    "text": ("data: hello\n\n", [D.NOT_JSON]),
    "event after the end": ("data: [DONE]\n\ndata: {}\n\n", [D.AFTER_DONE, D.AFTER_DONE]),
    "comment after the end": ("data: [DONE]\n\n: ping\n", [D.AFTER_DONE]),
    "no blank line at the end": ("data: {}\n", [D.CUT_OFF]),
    "no line feed at the end": ("data: {}\n\n: pi", [D.CUT_OFF]),
    "a field without its event": ("event: x\n", [D.OTHER_FIELD, D.CUT_OFF]),
}


@pytest.mark.parametrize(("stream", "expected"), BAD.values(), ids=BAD.keys())
def test_a_deviation_is_named(stream: str, expected: list[Deviation]) -> None:
    assert deviations(stream.encode()) == expected


def test_a_broken_character_is_named_and_read_as_the_standard_says() -> None:
    events, reader = read([b'data: {"a":"\xc3"}\n\n'])
    assert events[0].data == '{"a":"\ufffd"}'
    assert [(finding.deviation, finding.offset) for finding in reader.findings] == [(D.NOT_UTF8, 0)]


def test_every_deviation_has_an_example() -> None:
    shown = {deviation for _, expected in BAD.values() for deviation in expected} | {D.NOT_UTF8}
    assert shown == set(Deviation)


def test_findings_are_counted_beyond_those_kept() -> None:
    reader = SseReader()
    reader.feed(b"\n" * 5000)
    assert len(reader.findings) == 1000
    assert reader.num_findings == 5000


def test_nothing_can_be_fed_after_the_end() -> None:
    reader = SseReader()
    reader.finish()
    with pytest.raises(ValueError, match="after finish"):
        reader.feed(b"x")
