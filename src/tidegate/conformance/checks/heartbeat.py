"""Heartbeats: what a stream sends while there is nothing to say."""

import re
from collections.abc import Iterator
from itertools import pairwise

from tidegate.conformance.checks.generation import stream_chunks
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

LONGEST_S = 30.0
"""Nobody waits longer than this for a heartbeat in a run of minutes."""
_LATEST = 0.9
"""Of the time between a heartbeat's being due and the next event: who sends it later sends it with that event."""
_HEARTBEATS = re.compile(rb"(?:: ping\n)+")


def silence_to_script(page: Exchange) -> float:
    """Returns how long a script must be silent for one heartbeat to come for sure, in seconds, from what the contract
    page says. Raises CannotTell where it says nothing, or more than LONGEST_S.
    """
    return _heartbeat_s(page) * 1.3 + 0.5


def _heartbeat_s(page: Exchange) -> float:
    told = at(page.json, "streaming", "heartbeat_s")
    if not isinstance(told, int | float) or isinstance(told, bool) or told <= 0:
        raise CannotTell("the contract page tells no streaming.heartbeat_s")
    if told > LONGEST_S:
        raise CannotTell(f"a heartbeat every {told} s: longer than this suite waits")
    return float(told)


def beats_while_silent(page: Exchange, exchange: Exchange) -> Iterator[Fault]:
    """In the longest silence between two events stand comment lines `: ping`, each ended by one line feed, that came
    before the silence ended; nothing stands before the first event.
    """
    chunks = stream_chunks(exchange)
    heartbeat_s = _heartbeat_s(page)
    if len(chunks) < 2:
        raise CannotTell("fewer than two chunks came")
    if exchange.events[0].event.offset:
        yield Fault(f"{exchange.body[: exchange.events[0].event.offset]!r} stands before the first event", 0)
    before, after = max(pairwise(exchange.events), key=lambda pair: pair[1].at_s - pair[0].at_s)
    silence_s = after.at_s - before.at_s
    if silence_s < heartbeat_s:
        raise CannotTell(f"the longest silence of the stream was {silence_s:.1f} s")
    end = exchange.body.index(b"\n\n", before.event.offset) + 2
    between = exchange.body[end : after.event.offset]
    event = exchange.events.index(after)
    if not between:
        yield Fault(f"nothing came in {silence_s:.1f} s of silence; a heartbeat is due after {heartbeat_s:g} s", event)
    elif _HEARTBEATS.fullmatch(between) is None:
        yield Fault(f"{between[:100]!r} came in the silence, expected ': ping' and one line feed", event)
    elif _came_at_s(exchange, end) - before.at_s > heartbeat_s + _LATEST * (silence_s - heartbeat_s):
        yield Fault(f"the heartbeat came with the next event, after {silence_s:.1f} s", event)


def _came_at_s(exchange: Exchange, offset: int) -> float:
    """Returns when the byte of the body came."""
    total, raw_end = 0, 0
    for part in exchange.response.body:
        total += len(part.data)
        if offset < total:
            raw_end = part.end_at
            break
    seen = 0
    for piece in exchange.pieces:
        seen += len(piece.data)
        if seen >= raw_end:
            return piece.at_s
    return exchange.duration_s
