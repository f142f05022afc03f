"""How the bytes of a stream are framed, and when they come."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.conformance.checks.generation import answer_of, stream_chunks
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at
from tidegate.conformance.wire.sse_reader import Deviation

MIN_DECODE_S = 0.3
"""Less time than this between the first token and the last says nothing of buffering: other load weighs more."""
MIN_SPREAD = 0.25
"""Of the time that the tokens took, this much must lie between the first text and the last. An answer that is held back
until its end has about none of it; one that flows has nearly all."""
STREAM_HEADERS: Mapping[str, str] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
FORBIDDEN_STREAM_HEADERS = ("content-length", "content-encoding")


def is_framed_without(exchange: Exchange, *, deviations: tuple[Deviation, ...]) -> Iterator[Fault]:
    """The stream's framing has none of these deviations. The first of each kind is told."""
    stream_chunks(exchange)
    told: set[Deviation] = set()
    for finding in exchange.framing_findings:
        if finding.deviation in deviations and finding.deviation not in told:
            told.add(finding.deviation)
            yield Fault(f"{finding.deviation.value}, at byte {finding.offset}: {finding.line!r}")


def has_stream_headers(exchange: Exchange) -> Iterator[Fault]:
    """Intermediaries are told not to hold the stream back, and nothing says how long it will be."""
    stream_chunks(exchange)
    for name, value in STREAM_HEADERS.items():
        if (found := exchange.headers.get(name)) != value:
            yield Fault(f"{name} is {found!r}, expected {value!r}")
    for name in FORBIDDEN_STREAM_HEADERS:
        if name in exchange.headers:
            yield Fault(f"{name} is {exchange.headers[name]!r}; a stream has none")


def _has_text(chunk: Any) -> bool:
    """Whether the chunk has anything that was generated: content, reasoning, a call."""
    delta = at(chunk, "choices", 0, "delta")
    return isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")


def arrives_over_time(before: Exchange, long: Exchange, after: Exchange) -> Iterator[Fault]:
    """Text comes while it is generated. `before` and `after`: the same stream, cut to one token: what passes until the
    first token is not counted. Raises CannotTell where all of it is too fast to tell.
    """
    for exchange in (before, long, after):
        stream_chunks(exchange)
    decode_s = long.duration_s - max(before.duration_s, after.duration_s)
    times = [long.events[event].at_s for event, chunk in long.numbered_chunks if _has_text(chunk)]
    answer_of(long)
    if decode_s < MIN_DECODE_S:
        raise CannotTell(f"the answer took {max(decode_s, 0):.2f} s after its first token: too fast to tell")
    spread_s = times[-1] - times[0] if times else 0.0
    if spread_s < MIN_SPREAD * decode_s:
        yield Fault(
            f"the tokens took about {decode_s:.2f} s, and all text came within {spread_s:.3f} s: it was held back"
        )
