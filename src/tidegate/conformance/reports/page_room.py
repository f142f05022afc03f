"""How much of the exchanges a page shows, so that a browser opens it at once, however much failed. Pure.

The JSON report holds more of each exchange, a recording every byte; the page says so.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tidegate.conformance.reports.document import CaseDocument, EventDocument, ReportDocument, Transcript

MAX_PAGE_BYTES = 768 * 1024
"""Of all exchanges of cases that fail, together; each gets an equal share."""
MAX_EXCHANGE_BYTES = 16 * 1024
MIN_EXCHANGE_BYTES = 512
MAX_EXCHANGES = 8
"""Of a case that fails."""
MAX_UNTOLD_EXCHANGES = 2
MAX_UNTOLD_BYTES = 768
"""Of an exchange of a case that is unsupported or inconclusive."""
MAX_PASSED_EXCHANGES = 1
MAX_PASSED_BYTES = 320
"""Of the answer of a case that passed; its request is told by the command."""
MAX_EVENT_CHARS = 400
"""But for an event that shows a fault."""
_ROW_BYTES = 120
"""Of a row in the table of events, beside its data."""


@dataclass(frozen=True, slots=True)
class PageRoom:
    """`exchange`: bytes for each: a quarter for the request, the rest for what came back."""

    exchange: int

    @property
    def request(self) -> int:
        return self.exchange // 4

    def response(self, transcript: Transcript) -> int:
        """Returns how many bytes of a response are shown; few where the events are, too."""
        return self.exchange // (4 if transcript.events else 1) * 3 // 4

    @property
    def events(self) -> int:
        return self.exchange // 2


UNTOLD = PageRoom(MAX_UNTOLD_BYTES)


def measure_room(document: ReportDocument) -> PageRoom:
    """Returns the share of each exchange of cases that fail."""
    number = sum(min(len(case.transcripts), MAX_EXCHANGES) for case in document.cases if case.outcome == "fail")
    return PageRoom(max(MIN_EXCHANGE_BYTES, min(MAX_EXCHANGE_BYTES, MAX_PAGE_BYTES // max(number, 1))))


def choose_transcripts(case: CaseDocument) -> list[int]:
    """Returns the positions of the transcripts that are shown, in order: those that faults name, of the last run, then
    the others as they come.
    """
    named = {(fault.ask, fault.copy) for fault in case.faults}
    last = max((transcript.run for transcript in case.transcripts), default=0)
    ranked = sorted(
        range(len(case.transcripts)),
        key=lambda position: (
            case.transcripts[position].run != last
            or (case.transcripts[position].ask, case.transcripts[position].copy) not in named
        ),
    )
    most = {"pass": MAX_PASSED_EXCHANGES, "fail": MAX_EXCHANGES}.get(case.outcome, MAX_UNTOLD_EXCHANGES)
    return sorted(ranked[:most])


def choose_events(events: Sequence[EventDocument], wanted: Collection[int], max_bytes: int) -> list[EventDocument]:
    """Returns the events with the `wanted` indices, whole, and as many others from both ends as there is room for."""
    ranked = sorted(
        range(len(events)),
        key=lambda place: (events[place].index not in wanted, min(place, len(events) - 1 - place)),
    )
    kept: list[int] = []
    left = max_bytes
    for place in ranked:
        event = events[place]
        left -= _ROW_BYTES + min(len(event.data), MAX_EVENT_CHARS)
        if left < 0 and event.index not in wanted:
            break
        kept.append(place)
    return [_shorten(events[place], is_whole=events[place].index in wanted) for place in sorted(kept)]


def _shorten(event: EventDocument, *, is_whole: bool) -> EventDocument:
    if is_whole or len(event.data) <= MAX_EVENT_CHARS:
        return event
    return replace(event, data=event.data[:MAX_EVENT_CHARS], is_cut=True)
