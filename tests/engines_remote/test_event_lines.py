"""EventLines: the data of events, however the bytes are cut."""

import pytest

from tidegate.engines.remote import event_lines
from tidegate.engines.remote.event_lines import EventLines, UnreadableAnswer

STREAM = (
    b': ping\n\ndata: {"a": 1}\n\ndata:{"b": 2}\r\n\r\nevent: x\nid: 7\ndata: one\ndata: two\n\nretry: 5\n\n'
    b"data: [DONE]\n\n"
)
EVENTS = [b'{"a": 1}', b'{"b": 2}', b"one\ntwo", b"[DONE]"]


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_events_are_the_same_at_every_cut(cut: int) -> None:
    lines = EventLines()
    assert lines.feed(STREAM[:cut]) + lines.feed(STREAM[cut:]) == EVENTS
    lines.finish()


def test_events_are_the_same_byte_by_byte() -> None:
    lines = EventLines()
    assert [event for value in STREAM for event in lines.feed(bytes([value]))] == EVENTS


@pytest.mark.parametrize("end", [b"data: {", b"data: {}\n"])
def test_a_stream_that_ends_inside_an_event_is_cut_off(end: bytes) -> None:
    lines = EventLines()
    lines.feed(STREAM + end)
    with pytest.raises(UnreadableAnswer):
        lines.finish()


@pytest.mark.parametrize("line", [b"<html>\n", b"HTTP/1.1 200 OK\n"])
def test_a_line_that_is_no_field_is_no_event_stream(line: bytes) -> None:
    with pytest.raises(UnreadableAnswer, match="no field"):
        EventLines().feed(line)


@pytest.mark.parametrize("piece", [b"x" * 40, b"data: xxxxxxxxxxxxxxx\n"], ids=["one line", "many lines"])
def test_an_event_is_bounded(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    monkeypatch.setattr(event_lines, "MAX_EVENT_BYTES", 100)
    lines = EventLines()
    with pytest.raises(UnreadableAnswer, match="more than 100 bytes"):
        for _ in range(20):
            lines.feed(piece)
