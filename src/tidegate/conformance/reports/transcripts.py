"""Which exchanges of a case a report shows, and how much of each: those that show the fault first, within bounds.

Nothing is left out in silence: whatever is cut is told in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.conformance.judge import Evidence
from tidegate.conformance.reports.document import EventDocument, ReadDocument, Transcript
from tidegate.conformance.reports.endings import ENDINGS
from tidegate.conformance.reports.secrets_out import SecretsOut
from tidegate.conformance.reports.shown_bytes import num_shown, show_bytes
from tidegate.conformance.verdict import Outcome, Verdict
from tidegate.conformance.wire.exchange import Exchange

MAX_TRANSCRIPTS = 24
"""Of one case that did not pass."""
MAX_CASE_BYTES = 128 * 1024
"""Of requests and responses of one case that did not pass."""
MAX_PASSED_TRANSCRIPTS = 2
"""Of one case that passed. A recording keeps all."""
MAX_PASSED_REQUEST_BYTES = 384
MAX_PASSED_RESPONSE_BYTES = 512
MAX_PASSED_EVENTS = 4
MAX_REQUEST_BYTES = 16 * 1024
MAX_RESPONSE_BYTES = 64 * 1024
MAX_EVENTS = 400
"""Of one stream; half from its beginning, half from its end."""
MAX_EVENT_CHARS = 2000
MAX_READS = 400
MAX_FRAMING = 20


@dataclass(frozen=True, slots=True)
class _Room:
    """How much of a case is shown; bytes, but for the numbers of transcripts, events and reads."""

    transcripts: int
    case: int
    request: int
    response: int
    events: int
    reads: int


_WIDE = _Room(MAX_TRANSCRIPTS, MAX_CASE_BYTES, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, MAX_EVENTS, MAX_READS)
_NARROW = _Room(
    MAX_PASSED_TRANSCRIPTS,
    MAX_PASSED_TRANSCRIPTS * (MAX_PASSED_REQUEST_BYTES + MAX_PASSED_RESPONSE_BYTES),
    MAX_PASSED_REQUEST_BYTES,
    MAX_PASSED_RESPONSE_BYTES,
    MAX_PASSED_EVENTS,
    MAX_PASSED_EVENTS,
)


def show_transcripts(
    runs: Sequence[Evidence], verdict: Verdict, secrets: SecretsOut
) -> tuple[tuple[Transcript, ...], tuple[str, ...]]:
    """Returns the transcripts in the order of sending, and what was left out in words."""
    room = _NARROW if verdict.outcome is Outcome.PASS else _WIDE
    places = [
        (run, exchange) for run, evidence in enumerate(runs) for copies in evidence.values() for exchange in copies
    ]
    chosen = sorted(range(len(places)), key=lambda place: _rank(*places[place], verdict))[: room.transcripts]
    left = room.case
    shown: dict[int, Transcript] = {}
    for place in chosen:
        shown[place] = _show(*places[place], room, left, secrets)
        left -= num_shown(shown[place].request) + num_shown(shown[place].response)
    cut = []
    if len(places) > len(chosen):
        cut.append(f"{len(places) - len(chosen)} of {len(places)} exchanges are left out")
    if num_cut := sum(transcript.request.num_cut + transcript.response.num_cut for transcript in shown.values()):
        cut.append(f"{num_cut} bytes are left out of the exchanges below; each says where")
    return tuple(shown[place] for place in sorted(shown)), tuple(cut)


def _rank(run: int, exchange: Exchange, verdict: Verdict) -> tuple[bool, int, bool]:
    """The exchanges that faults name, of the last run, which is the one that failed; then the rest of that run."""
    is_named = any((fault.ask, fault.copy) == (exchange.ask, exchange.copy) for fault in verdict.faults)
    return (not is_named, -run, exchange.copy > 0)


def _show(run: int, exchange: Exchange, room: _Room, max_bytes: int, secrets: SecretsOut) -> Transcript:
    request = show_bytes(secrets.of_bytes(exchange.request), min(room.request, max_bytes // 2))
    raw = b"".join(piece.data for piece in exchange.pieces)
    response = show_bytes(secrets.of_bytes(raw), min(room.response, max_bytes - num_shown(request)))
    says = f"{exchange.ending.value}: {exchange.detail}" if exchange.detail else exchange.ending.value
    findings = exchange.framing_findings[:MAX_FRAMING]
    return Transcript(
        run=run,
        ask=exchange.ask,
        copy=exchange.copy,
        method=exchange.method,
        url=secrets.of_text(exchange.url),
        status=exchange.status,
        ending=ENDINGS[exchange.ending],
        ending_says=secrets.of_text(says),
        duration_s=round(exchange.duration_s, 6),
        sent_at_s=round(exchange.sent_at_s, 6),
        request=request,
        response=response,
        reads=tuple(_reads(exchange, room.reads)),
        events=tuple(_events(exchange, room.events, response.num_cut > 0, secrets)),
        num_events=len(exchange.events),
        framing=tuple(f"{found.deviation.value}, at byte {found.offset} of the body" for found in findings),
    )


def _reads(exchange: Exchange, max_reads: int) -> Iterator[ReadDocument]:
    """Reads beyond the bound are counted into the last one."""
    for piece in exchange.pieces[: max_reads - 1]:
        yield ReadDocument(at_s=round(piece.at_s, 6), num_bytes=len(piece.data))
    rest = exchange.pieces[max_reads - 1 :]
    if rest:
        yield ReadDocument(at_s=round(rest[-1].at_s, 6), num_bytes=sum(len(piece.data) for piece in rest))


def _events(exchange: Exchange, max_events: int, is_short: bool, secrets: SecretsOut) -> Iterator[EventDocument]:
    """`is_short`: the response itself had to be cut, so that events are kept short too."""
    max_chars = MAX_EVENT_CHARS // 8 if is_short else MAX_EVENT_CHARS
    events = exchange.events
    half = max_events // 2
    for index, timed in enumerate(events):
        if half <= index < len(events) - half:
            continue
        data = secrets.of_text(timed.event.data)
        yield EventDocument(index=index, at_s=round(timed.at_s, 6), data=data[:max_chars], is_cut=len(data) > max_chars)
