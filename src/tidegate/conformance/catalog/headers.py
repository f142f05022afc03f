"""What stands in the headers of requests and answers."""

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.checks.http_headers import (
    echoes,
    has_header,
    has_no_header,
    has_own_request_id,
    have_distinct_request_ids,
    is_event_stream,
    is_json,
    is_uncompressed,
    names_ignored,
    serves_told_revision,
)
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_SHORT = chat_body(max_tokens=2)
_STREAMED = chat_body(max_tokens=2, stream=True)
_OK = expect(has_status, allowed=(200,))
HOSTILE = 'id {marker}";<script>alert(1)</script>'
_EVERYWHERE = (
    Ask(name="listing", method="GET", path="/models"),
    Ask(name="answer", body=_SHORT),
    Ask(name="stream", body=_STREAMED),
    Ask(name="fault", body=chat_body(temperature=-1)),
    Ask(name="bad_json", raw=b"{"),
    Ask(name="unknown_route", method="GET", path="/no-such-route"),
)


def _public(
    what: str,
    title: str,
    why: str,
    clause: str,
    asks: tuple[Ask, ...],
    expects: tuple[Expect, ...],
    severity: Severity = Severity.BREAKS_CLIENTS,
) -> Case:
    """What every server owes its clients."""
    return Case(
        id=f"headers.{what}",
        title=title,
        why=why,
        clauses=(f"openai:{clause}",),
        severity=severity,
        needs=(Capability.CHAT, Capability.STREAMS),
        asks=asks,
        expects=expects,
    )


def _own(what: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...]) -> Case:
    """What only our contract says."""
    return Case(
        id=f"headers.{what}",
        title=title,
        why=why,
        clauses=(f"tidegate:headers.{clause}",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CONTRACT,),
        asks=asks,
        expects=expects,
    )


_PUBLIC = (
    _public(
        "whole_type",
        "An answer that is not streamed says that it is JSON",
        "Clients return the bare text of anything else.",
        "headers.whole_type",
        (Ask(body=_SHORT),),
        (_OK, expect(is_json)),
    ),
    _public(
        "stream_type",
        "A stream says that it is one",
        "Browsers and proxies read anything else to its end first.",
        "headers.stream_type",
        (Ask(body=_STREAMED),),
        (_OK, expect(is_event_stream)),
    ),
    _public(
        "accept_json",
        "A stream is a stream where `Accept` says application/json, too",
        "The official clients send that header with every request, streamed or not.",
        "headers.stream_type",
        (Ask(body=_STREAMED, headers={"Accept": "application/json"}),),
        (_OK, expect(is_event_stream)),
    ),
    _public(
        "media_type_parameters",
        "`application/json; charset=utf-8` is JSON",
        "Many HTTP libraries add the parameter; they could not call at all.",
        "http.coding",
        (
            Ask(name="usual", body=_SHORT, headers={"Content-Type": "application/json; charset=utf-8"}),
            Ask(name="odd_case", body=_SHORT, headers={"Content-Type": "Application/JSON ;charset=UTF-8"}),
        ),
        tuple(expect(has_status, name, allowed=(200,)) for name in ("usual", "odd_case")),
    ),
    _public(
        "unknown",
        "Headers that a server does not know change nothing",
        "Official clients and gateways send a dozen of them with each request.",
        "headers.unknown",
        (
            Ask(
                body=_SHORT,
                headers={
                    "x-stainless-lang": "python",
                    "x-stainless-retry-count": "0",
                    "x-stainless-read-timeout": "600",
                    "OpenAI-Organization": "org-{marker}",
                    "OpenAI-Project": "proj-{marker}",
                    "Cookie": "a=b",
                    "X-Forwarded-For": "203.0.113.7",
                },
            ),
        ),
        (_OK,),
    ),
    _public(
        "request_id",
        "Every answer carries `x-request-id`, errors and streams too",
        "Without it nobody can find a failed call in the server's log.",
        "headers.request_id",
        _EVERYWHERE,
        tuple(expect(has_header, ask.name, name="x-request-id") for ask in _EVERYWHERE),
        Severity.NUISANCE,
    ),
    _public(
        "distinct_request_ids",
        "Two requests have two ids",
        "One id for all leads to the wrong call in the log.",
        "headers.request_id",
        (Ask(name="first", body=_SHORT), Ask(name="second", body=_SHORT)),
        (expect(have_distinct_request_ids, "first", "second"),),
        Severity.NUISANCE,
    ),
)

_ECHOED = "trace-{marker}.A_9"
_TRACE, _SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_TRACES = (
    ("well_formed", f"00-{_TRACE}-{_SPAN}-01", "vendor=t61rcWkgMzE"),
    ("later_version", f"cc-{_TRACE}-{_SPAN}-01-what.the=future", "a=1,,b=2"),
    ("zero", f"00-{'0' * 32}-{'0' * 16}-01", "a=1"),
    ("capitals", f"00-{_TRACE.upper()}-{_SPAN}-01", "A=1"),
    ("forbidden_version", f"ff-{_TRACE}-{_SPAN}-01", "a=1,a=2"),
    ("no_trace", "{marker}", "=" * 600),
    ("empty", "", ""),
)
_OWN = (
    _own(
        "request_id_echo",
        "A well-formed `X-Request-Id` is echoed, on errors and streams too",
        "The caller's own log cannot be joined with the server's.",
        "request_id",
        tuple(
            Ask(name=ask.name, method=ask.method, path=ask.path, body=ask.body, raw=ask.raw, headers=headers)
            for ask in _EVERYWHERE
            for headers in [{"X-Request-Id": _ECHOED}]
        ),
        tuple(expect(echoes, ask.name, name="x-request-id", value=_ECHOED) for ask in _EVERYWHERE),
    ),
    _own(
        "request_id_hostile",
        "An `X-Request-Id` that is not well formed is not echoed; the answer has an id of the server's own",
        "What is echoed lands in logs and pages, and runs there.",
        "request_id",
        (
            Ask(name="markup", body=_SHORT, headers={"X-Request-Id": HOSTILE}),
            Ask(name="long", body=_SHORT, headers={"X-Request-Id": "{marker}" + "a" * 200}),
            Ask(name="empty", body=_SHORT, headers={"X-Request-Id": ""}),
            Ask(name="not_ascii", body=_SHORT, headers={"X-Request-Id": "{marker}\u00e9"}),
        ),
        tuple(
            expect(has_own_request_id, name, hostile=hostile)
            for name, hostile in (("markup", HOSTILE), ("long", "a" * 64), ("empty", "{marker}"), ("not_ascii", "é"))
        ),
    ),
    _own(
        "trace_context",
        "A trace context is taken where it is well formed, and ignored where it is not",
        "A proxy with tracing of its own, or a bug in it, makes every call fail.",
        "trace",
        tuple(
            Ask(name=name, body=_SHORT, headers={"traceparent": parent, "tracestate": state})
            for name, parent, state in _TRACES
        ),
        tuple(expect(has_status, name, allowed=(200,)) for name, _, _ in _TRACES),
    ),
    _own(
        "contract",
        "`Tidegate-Contract` stands on every answer",
        "A client cannot tell which contract it talks to where a call fails.",
        "contract",
        _EVERYWHERE,
        tuple(expect(has_header, ask.name, name="tidegate-contract", pattern=r"1\.\d+") for ask in _EVERYWHERE),
    ),
    _own(
        "served_revision",
        "The served revision is the same in the header, the body and every chunk",
        "Recorded results cannot be told apart by what made them.",
        "revision",
        (Ask(name="whole", body=_SHORT), Ask(name="stream", body=_STREAMED)),
        tuple(expect(serves_told_revision, name) for name in ("whole", "stream")),
    ),
    _own(
        "ignored_fields",
        "Unknown fields are reported by name, known ones are not",
        "A misspelt parameter has no effect, and nobody is told.",
        "ignored",
        (
            Ask(name="unknown", body=chat_body(max_tokens=2, tempreature=0.5, zzz_unknown=None)),
            Ask(name="known", body=_SHORT),
            Ask(name="stream", body=chat_body(max_tokens=2, stream=True, zzz_unknown=[])),
        ),
        (
            expect(names_ignored, "unknown", names=("tempreature", "zzz_unknown")),
            expect(names_ignored, "known", names=()),
            expect(names_ignored, "stream", names=("zzz_unknown",)),
        ),
    ),
    _own(
        "stream",
        "A stream may not be cached, held back, measured or compressed on its way",
        "A proxy that buffers it makes a stream into one late answer.",
        "stream",
        (Ask(body=_STREAMED, headers={"Accept-Encoding": "gzip, deflate, br, zstd"}),),
        (
            expect(has_header, name="content-type", pattern="text/event-stream; charset=utf-8"),
            expect(has_header, name="cache-control", pattern="no-cache"),
            expect(has_header, name="x-accel-buffering", pattern="no"),
            expect(has_no_header, name="content-length"),
            expect(is_uncompressed),
        ),
    ),
)

CASES = (*_PUBLIC, *_OWN)
