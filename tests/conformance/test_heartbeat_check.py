"""Heartbeats: when they came, in which bytes, and when nothing can be said of them."""

from typing import Any

import pytest

from harness.exchanges import answered, http
from tidegate.conformance.checks.heartbeat import LONGEST_S, beats_while_silent, silence_to_script
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece

RIGHT = "right"
CANNOT_TELL = "cannot tell"


def page(heartbeat_s: Any) -> Exchange:
    return answered(200, {"streaming": {"heartbeat_s": heartbeat_s}})


def stream(*parts: tuple[float, bytes]) -> Exchange:
    """Returns a stream of which these bytes came at these times."""
    head = http(200, b"x" * sum(len(data) for _, data in parts), "text/event-stream").partition(b"\r\n\r\n")[0]
    pieces = (Piece(0.0, head + b"\r\n\r\n"), *(Piece(at_s, data) for at_s, data in parts))
    return Exchange("it", 0, "POST", "http://server/v1/chat/completions", b"", "m", pieces, Ending.WHOLE)


def frame(text: str) -> bytes:
    return b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n' % text.encode()


DONE = b"data: [DONE]\n\n"
STREAMS: dict[str, tuple[Exchange, str]] = {
    "one heartbeat": (stream((0.1, frame("a")), (1.1, b": ping\n"), (2.0, frame("b") + DONE)), RIGHT),
    "two": (stream((0.1, frame("a")), (1.1, b": ping\n"), (2.1, b": ping\n"), (3.0, frame("b") + DONE)), RIGHT),
    "none": (stream((0.1, frame("a")), (2.0, frame("b") + DONE)), "nothing came"),
    "one with the next event": (
        stream((0.1, frame("a")), (2.0, b": ping\n" + frame("b") + DONE)),
        "with the next event",
    ),
    "a blank line after it": (
        stream((0.1, frame("a")), (1.1, b": ping\n\n"), (2.0, frame("b") + DONE)),
        "expected ': ping'",
    ),
    "another comment": (stream((0.1, frame("a")), (1.1, b":\n"), (2.0, frame("b") + DONE)), "expected ': ping'"),
    "one before the first event": (
        stream((0.1, b": ping\n"), (0.2, frame("a")), (1.3, b": ping\n"), (2.0, frame("b") + DONE)),
        "before the first event",
    ),
    "no silence": (stream((0.1, frame("a")), (0.6, frame("b")), (1.1, DONE)), CANNOT_TELL),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_heartbeat_stands_alone_in_the_silence_and_comes_before_its_end(name: str) -> None:
    exchange, expected = STREAMS[name]
    try:
        found = " ".join(fault.says for fault in beats_while_silent(page(1), exchange)) or RIGHT
    except CannotTell:
        found = CANNOT_TELL
    assert expected in found


def test_a_script_is_silent_for_longer_than_the_page_says() -> None:
    assert silence_to_script(page(15)) > 15
    assert silence_to_script(page(LONGEST_S)) > LONGEST_S


@pytest.mark.parametrize("told", [None, "15", True, 0, -1, LONGEST_S + 0.1])
def test_a_heartbeat_that_is_not_told_or_beyond_the_bound_is_not_waited_for(told: Any) -> None:
    with pytest.raises(CannotTell):
        silence_to_script(page(told))
