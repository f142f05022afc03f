"""Reports of runs that never took place: every outcome, streams, hostile bytes. For tests of how reports are shown."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Severity
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probe import Probed
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.verdict import Fault, Outcome, Verdict
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece
from tidegate.conformance.wire.target import Target

KEY = "sk-made-up-1234"
HOSTILE = "</script><script>alert(1)</script><!-- \u202edesrever\u202c \x1b[31mred\x1b[0m \0 &amp; ]]> \ud800 `| |`"
"""What a server might answer to do harm to whoever reads the report of it."""


def says_hello(exchange: Exchange) -> Iterator[Fault]:
    """The answer says hello."""
    if b"hello" not in exchange.body:
        yield Fault("no hello")


def make_case(case_id: str, **fields: Any) -> Case:
    """Returns a case of one ask; `fields` go before."""
    return Case(
        **{
            "id": case_id,
            "title": f"What {case_id} says is so",
            "why": "Clients rely on it.",
            "clauses": ("openai:chat.object",),
            "severity": Severity.BREAKS_CLIENTS,
            "needs": (Capability.CHAT,),
            "asks": (Ask(),),
            "expects": (Expect(says_hello, args={"allowed": (200, 404)}),),
        }
        | fields
    )


def make_exchange(pieces: Sequence[tuple[float, bytes]], body: Any = None, **fields: Any) -> Exchange:
    """Returns an exchange whose response came in these pieces; `body` is what was sent."""
    data = json.dumps(body).encode() if body is not None else b""
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: server:8000\r\nUser-Agent: tidegate-conform\r\nAccept: */*\r\n"
        b"Content-Type: application/json\r\nContent-Length: " + str(len(data)).encode() + b"\r\n"
        b"Authorization: Bearer REDACTED\r\n\r\n"
    )
    return Exchange(
        **{
            "ask": "it",
            "copy": 0,
            "method": "POST",
            "url": "http://server:8000/v1/chat/completions",
            "request": head + data,
            "marker": "mabc",
            "pieces": tuple(Piece(at_s, piece) for at_s, piece in pieces),
            "ending": Ending.WHOLE,
            "duration_s": pieces[-1][0] + 0.001 if pieces else 0.01,
        }
        | fields
    )


def whole(body: bytes, status: str = "200 OK") -> list[tuple[float, bytes]]:
    """Returns the pieces of a response with a declared length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return [(0.012, head.encode() + body)]


def stream(events: Sequence[tuple[float, str]]) -> list[tuple[float, bytes]]:
    """Returns the pieces of an event stream in chunks, one event a chunk."""
    pieces = [(0.008, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")]
    for at_s, text in events:
        data = f"data: {text}\n\n".encode("utf-8", "surrogatepass")
        pieces.append((at_s, b"%x\r\n%s\r\n" % (len(data), data)))
    return [*pieces, (events[-1][0], b"0\r\n\r\n")]


def delta(**fields: Any) -> str:
    """Returns one chunk of a chat stream."""
    return json.dumps({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def make_result(case: Case, verdict: Verdict, *runs: Mapping[str, Sequence[Exchange]]) -> Result:
    return Result(case, verdict, tuple(runs), 0.25)


def make_report(*results: Result, **fields: Any) -> RunReport:
    """Returns a report of these results about a server that can chat and stream."""
    capabilities = frozenset({Capability.CHAT, Capability.STREAMS})
    probed = Probed(
        "tiny",
        capabilities,
        {Capability.TOOLS: "POST /v1/chat/completions with tools: 400 tools are not served"},
        is_scripted=False,
        has_contract=False,
        found_by={Capability.CHAT: "POST /v1/chat/completions: 200"},
        identity={"server": "made-up/1.0"},
    )
    target = Target(base_url="http://server:8000/v1", api_key=KEY, model="tiny", seed=7)
    return RunReport(
        **{
            "target": target,
            "probed": probed,
            "results": results,
            "duration_s": 12.5,
            "started_at": "2026-01-31T12:00:00Z",
        }
        | fields
    )


def every_outcome() -> RunReport:
    """Returns a report with each outcome in two areas, a hostile server, a stream with a pause and a fault."""
    words = [(0.03 + 0.01 * number, delta(content=f"word{number} ")) for number in range(12)]
    events = [(0.02, delta(role="assistant")), *words, (0.6, delta(content=HOSTILE)), (0.61, "[DONE]")]
    passed = make_result(
        make_case("chat.object"), Verdict("chat.object", Outcome.PASS), {"it": [make_exchange(whole(b'"hello"'), {})]}
    )
    failed = make_result(
        make_case("chat.stream", severity=Severity.WRONG_DATA),
        Verdict("chat.stream", Outcome.FAIL, (Fault(f"event says {HOSTILE} for {KEY}", event=13, ask="it"),)),
        {"it": [make_exchange(stream(events), {"messages": [{"role": "user", "content": "it's <b>"}]})]},
    )
    body = json.dumps({"error": {"message": f"Incorrect API key {KEY} {HOSTILE}"}}).encode()
    refused = make_result(
        make_case("tools.forced", needs=(Capability.TOOLS,), severity=Severity.NUISANCE),
        Verdict("tools.forced", Outcome.UNSUPPORTED, reason=f"the server answers 400: {HOSTILE}"),
        {"it": [make_exchange(whole(body, "400 Bad Request"), {})]},
    )
    unsure = make_result(
        make_case("tools.none", severity=Severity.WRONG_BILL),
        Verdict("tools.none", Outcome.INCONCLUSIVE, reason="the text is too short", num_runs=3, num_conclusive=0),
        {"it": [make_exchange([], {}, ending=Ending.TIMED_OUT, detail="after 60 s", duration_s=60.0)]},
    )
    return make_report(passed, failed, refused, unsure)
