"""Exchange: one request and what came back, byte by byte, with times. Nothing in it is interpreted twice.

Does not know: which answer is right.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from tidegate.conformance.wire.http_response import ResponseReader
from tidegate.conformance.wire.json_text import read_json
from tidegate.conformance.wire.sse_reader import DONE, Finding, SseEvent, SseReader


class Ending(Enum):
    WHOLE = "the response ended as its framing promised"
    CUT = "the connection was closed before the response ended"
    RESET = "the connection was reset"
    TIMED_OUT = "nothing more came in time"
    LEFT = "we went away, as the case asks"
    NO_CONNECTION = "no connection could be made"
    NOT_HTTP = "what came is not HTTP"
    ENDLESS = "more came than anyone would read; we went away"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one read, and when, in seconds from the start of sending."""

    at_s: float
    data: bytes


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """One event of a stream and when its last byte came."""

    at_s: float
    event: SseEvent


@dataclass(frozen=True)
class Exchange:
    """`url`: what was asked, without credentials. `request`: the bytes sent, without credentials. `detail`: of the
    ending, in words, where there is more to say. `duration_s`: from the start of sending to the ending. `sent_at_s`:
    from the start of the case's run to the start of sending.
    """

    ask: str
    copy: int
    method: str
    url: str
    request: bytes
    marker: str
    pieces: tuple[Piece, ...]
    ending: Ending
    detail: str = ""
    duration_s: float = 0.0
    sent_at_s: float = 0.0
    request_json: Any = field(default=None, compare=False)

    @cached_property
    def response(self) -> ResponseReader:
        """The response, read as HTTP."""
        reader = ResponseReader(self.method)
        for piece in self.pieces:
            reader.feed(piece.data)
        if self.ending in (Ending.WHOLE, Ending.CUT):
            reader.finish()
        return reader

    @property
    def status(self) -> int | None:
        """None: no response came, or none that is HTTP."""
        return self.response.status

    @cached_property
    def headers(self) -> dict[str, str]:
        """By name in lower case; several of one name are joined with a comma (RFC 9110, section 5.3)."""
        found: dict[str, str] = {}
        for name, value in self.response.headers:
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return found

    @cached_property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.response.body)

    @cached_property
    def json(self) -> Any:
        """The body as JSON; NOT_JSON where it is none."""
        return read_json(self.body)

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"

    @cached_property
    def _stream(self) -> tuple[tuple[TimedEvent, ...], SseReader]:
        reader = SseReader()
        ends: list[int] = []
        times: list[float] = []
        total = 0
        for piece in self.pieces:
            total += len(piece.data)
            ends.append(total)
            times.append(piece.at_s)
        events = []
        for part in self.response.body:
            at_s = times[bisect_left(ends, part.end_at)]
            events += [TimedEvent(at_s, event) for event in reader.feed(part.data)]
        if self.ending is not Ending.LEFT:
            reader.finish()
        return tuple(events), reader

    @property
    def events(self) -> tuple[TimedEvent, ...]:
        """Events of the stream, `[DONE]` among them."""
        return self._stream[0] if self.is_stream else ()

    @property
    def framing_findings(self) -> tuple[Finding, ...]:
        """What the stream's framing does that only lenient readers forgive."""
        return tuple(self._stream[1].findings) if self.is_stream else ()

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` came."""
        return self.is_stream and self._stream[1].is_done

    @cached_property
    def numbered_chunks(self) -> tuple[tuple[int, Any], ...]:
        """The JSON of all events but `[DONE]`, in order, each with the index of its event in `events`; NOT_JSON for
        those that are none.
        """
        return tuple(
            (index, read_json(timed.event.data.encode()))
            for index, timed in enumerate(self.events)
            if timed.event.data != DONE
        )

    @property
    def numbered_bodies(self) -> tuple[tuple[int | None, Any], ...]:
        """`numbered_chunks` of a stream; else the one body, which is no event: None."""
        return self.numbered_chunks if self.is_stream else ((None, self.json),)

    @cached_property
    def chunks(self) -> tuple[Any, ...]:
        """As `numbered_chunks`, without the indices: for what is asked of all of them together."""
        return tuple(chunk for _, chunk in self.numbered_chunks)
