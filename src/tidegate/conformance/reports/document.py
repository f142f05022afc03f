"""The report as a document: the one definition of `tidegate-conformance-report`, from which its JSON Schema is made.

Version 1.x: later minors add members and values of `says` and `reason`; readers skip what they do not know. Times are
seconds, sizes bytes. Everything that a server sent is text as it came, its credentials replaced by `REDACTED`; bytes
that are not UTF-8 are base64. Does not know: how it is made from a run, how it is shown.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

FORMAT: Final = "tidegate-conformance-report"
VERSION: Final = "1.1"

OutcomeName = Literal["pass", "fail", "unsupported", "inconclusive"]
SeverityName = Literal["breaks clients", "wrong data", "wrong bill", "nuisance"]
EndingName = Literal["WHOLE", "CUT", "RESET", "TIMED_OUT", "LEFT", "NO_CONNECTION", "NOT_HTTP", "ENDLESS"]


class Shown(Struct, frozen=True, kw_only=True):
    """Bytes, perhaps with a part in the middle left out."""

    encoding: Literal["utf-8", "base64"]
    start: Annotated[str, Meta(description="the first bytes; all of them where nothing was cut")]
    end: Annotated[str, Meta(description="the last bytes, where something was cut")] = ""
    num_bytes: Annotated[int, Meta(description="of the whole, before anything was cut")]
    num_cut: Annotated[int, Meta(description="bytes left out between `start` and `end`")] = 0


class ReadDocument(Struct, frozen=True, kw_only=True):
    """One read from the socket."""

    at_s: Annotated[float, Meta(description="from the start of sending")]
    num_bytes: int


class EventDocument(Struct, frozen=True, kw_only=True):
    """One event of a stream, as the HTML standard dispatches it."""

    index: int
    at_s: Annotated[float, Meta(description="when its last byte came, from the start of sending")]
    data: str
    is_cut: Annotated[bool, Meta(description="whether `data` is only its beginning")] = False


class Transcript(Struct, frozen=True, kw_only=True):
    """One request and what came back."""

    run: Annotated[int, Meta(description="of the case's runs, from 0")]
    ask: str
    copy: int
    method: str
    url: str
    status: Annotated[int | None, Meta(description="null: no response came, or none that is HTTP")]
    ending: EndingName
    ending_says: str
    duration_s: Annotated[float, Meta(description="from the start of sending to the ending")]
    sent_at_s: float
    request: Shown
    response: Annotated[Shown, Meta(description="head and body as they came over the wire, chunk sizes among them")]
    reads: tuple[ReadDocument, ...]
    events: tuple[EventDocument, ...]
    num_events: Annotated[int, Meta(description="that came; `events` may hold fewer")]
    framing: Annotated[tuple[str, ...], Meta(description="what only lenient readers of event streams forgive")] = ()


class SpanDocument(Struct, frozen=True, kw_only=True):
    """When one exchange took place, on the time of the case's last run."""

    ask: str
    copy: int
    wave: int
    sent_at_s: Annotated[float, Meta(description="from the start of the run")]
    first_after_s: Annotated[
        float | None, Meta(description="first event, or first byte where there are none, from the start of sending")
    ]
    duration_s: float
    num_events: int
    status: int | None
    ending: EndingName


class FaultDocument(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, in words, and where it is seen."""

    says: str
    ask: str
    copy: int
    event: Annotated[int | None, Meta(description="index of the event of the stream that shows it")]


class ClauseDocument(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    source: str


class AskDocument(Struct, frozen=True, kw_only=True):
    """One request of a case, as the catalogue has it."""

    name: str
    method: str
    path: str
    wave: int
    copies: int
    says: Annotated[tuple[str, ...], Meta(description="how it is sent and read, where that is out of the ordinary")]


class CheckDocument(Struct, frozen=True, kw_only=True):
    """One assertion of a case."""

    name: str
    says: str
    on: tuple[str, ...]
    args: str


class CaseDocument(Struct, frozen=True, kw_only=True):
    id: str
    area: str
    title: Annotated[str, Meta(description="what must be so")]
    why: Annotated[str, Meta(description="what happens to a client where it is not")]
    severity: SeverityName
    profile: Literal["openai", "tidegate"]
    clauses: tuple[ClauseDocument, ...]
    needs: Annotated[tuple[str, ...], Meta(description="names of capabilities")]
    asks: tuple[AskDocument, ...]
    checks: tuple[CheckDocument, ...]
    outcome: OutcomeName
    faults: tuple[FaultDocument, ...]
    num_faults: Annotated[int, Meta(description="that were found; `faults` may hold fewer")]
    reason: Annotated[str, Meta(description="why it is unsupported or inconclusive")]
    num_runs: int
    num_conclusive: Annotated[int, Meta(description="runs that told something")]
    duration_s: float
    by_hand: Annotated[tuple[str, ...], Meta(description="`curl` commands that show it")]
    spans: Annotated[tuple[SpanDocument, ...], Meta(description="all exchanges of the last run, in time")] = ()
    num_spans: Annotated[int, Meta(description="that were; `spans` may hold fewer")] = 0
    num_exchanges: Annotated[int, Meta(description="of all runs; `transcripts` may hold fewer")] = 0
    transcripts: tuple[Transcript, ...]
    cut: Annotated[tuple[str, ...], Meta(description="what transcripts and commands leave out, in words")]


class CapabilityDocument(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    is_there: bool
    reason: Annotated[str, Meta(description="how it was seen, or why it is held not to be there")]


class ServerDocument(Struct, frozen=True, kw_only=True):
    base_url: str
    model: str
    identity: Annotated[dict[str, str], Meta(description="what the server says of itself")]
    is_scripted: bool
    has_contract: bool


class Counts(Struct, frozen=True, kw_only=True):
    """Cases by outcome."""

    passed: int
    failed: int
    unsupported: int
    inconclusive: int

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.unsupported + self.inconclusive


class AreaDocument(Struct, frozen=True, kw_only=True):
    name: str
    counts: Counts


class ReportDocument(Struct, frozen=True, kw_only=True):
    """One run of the conformance suite against one server."""

    format: Literal["tidegate-conformance-report"] = FORMAT
    version: Annotated[str, Meta(pattern=r"^1\.[0-9]+$")] = VERSION
    suite_version: str
    started_at: Annotated[str, Meta(description="UTC, as 2026-01-31T12:00:00Z; empty: not known")]
    duration_s: float
    seed: int
    server: ServerDocument
    capabilities: tuple[CapabilityDocument, ...]
    counts: Counts
    stopped: Annotated[str, Meta(description="why the run ended before its end; empty: it did not")] = ""
    not_run: Annotated[tuple[str, ...], Meta(description="ids of cases that it left out")] = ()
    areas: tuple[AreaDocument, ...]
    cases: tuple[CaseDocument, ...]
