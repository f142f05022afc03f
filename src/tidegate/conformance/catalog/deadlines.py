"""Deadlines: what comes of a request whose time is limited (profile of our contract), and that nobody is harmed."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.load_asks import LONG_QUESTION, LONG_SCRIPT, back_ask, long_body, probe_ask, rest_ask
from tidegate.conformance.checks.deadline import (
    has_same_text,
    is_foreseen,
    is_in_time,
    is_out_of_time,
    is_timed_out,
    took_too_long,
    triple_time,
)
from tidegate.conformance.checks.load import is_back_to
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.checks.replay import is_nothing_counted
from tidegate.conformance.checks.whole_answer import is_visibly_cut, is_whole_answer
from tidegate.conformance.probing.capability import Capability

_WHY_LATE = "Work goes on for callers that have given up, and those that have not wait behind it."


def _case(
    what: str, title: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...], clause: str, **fields: Any
) -> Case:
    settings: dict[str, Any] = {"why": _WHY_LATE, "severity": Severity.NUISANCE, "profile": Profile.TIDEGATE}
    needs = fields.pop("needs", ())
    return Case(
        id=f"deadlines.{what}",
        title=title,
        clauses=(clause,),
        needs=(Capability.CHAT, Capability.DEADLINES, *needs),
        asks=asks,
        expects=expects,
        **(settings | fields),
    )


_GENEROUS = "tidegate:deadlines.effective"
_VETO = "tidegate:deadlines.veto"
_EXPIRY = "tidegate:deadlines.expiry"

# The first answer fills caches: where they serve both of the others, these are computed alike, to the last bit.
GENEROUS: tuple[Case, ...] = (
    _case(
        "generous_header",
        "A deadline far away changes nothing",
        (
            Ask(name="first", body=chat_body()),
            Ask(name="plain", wave=1, body=chat_body()),
            Ask(name="timed", wave=2, body=chat_body(), headers={"X-Deadline-Ms": "600000"}),
        ),
        (expect(is_whole_answer, "timed"), expect(has_same_text, "plain", "timed")),
        _GENEROUS,
        tries=2,
    ),
    _case(
        "generous_fields",
        "Deadlines in the body that are far away change nothing",
        (
            Ask(name="first", body=chat_body()),
            Ask(name="plain", wave=1, body=chat_body()),
            Ask(name="timed", wave=2, body=chat_body(deadline_ms=600000, first_token_deadline_ms=500000)),
        ),
        (expect(is_whole_answer, "timed"), expect(has_same_text, "plain", "timed")),
        _GENEROUS,
        tries=2,
    ),
    Case(
        id="deadlines.unknown_header",
        title="A request with a deadline far away is answered, whether the server knows the header or not",
        why="Clients of several servers send the header to all of them.",
        clauses=("openai:headers.unknown",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body(), headers={"X-Deadline-Ms": "600000", "X-First-Token-Deadline-Ms": "500000"}),),
        expects=(expect(is_whole_answer),),
    ),
)

_NEAR = Ask(name="near", method="GET", path="/models")
"""Takes no work: its time is the network's."""
_IN_NO_TIME = {"X-Deadline-Ms": "1"}
_SLOW_SCRIPT = {"pieces": ["6e6f"], "queue_delay_s": 1.0}
"""So that one millisecond is not enough for any scripted engine."""
_LONG = {"max_tokens": 64}
_QUEUED = {"max_tokens": 8}
_QUEUED_SCRIPT = {"pieces": ["31"], "repeat": 8, "delays_s": [0.05]}


def _late(name: str, wave: int, body: dict[str, Any], headers: Any = None, path: str = "/chat/completions") -> Ask:
    return Ask(name=name, wave=wave, body=body, headers=headers or {}, path=path, script=_SLOW_SCRIPT)


_CHAT, _COMPLETIONS = "/chat/completions", "/completions"
_STREAM = long_body(stream=True, **_LONG)
_COMPLETION = completion_body(LONG_QUESTION, **_LONG)
_VETOED: tuple[tuple[str, str, str, dict[str, Any], Any, tuple[Capability, ...]], ...] = (
    ("header", "by header", _CHAT, long_body(**_LONG), _IN_NO_TIME, ()),
    ("field", "by field", _CHAT, long_body(**_LONG, deadline_ms=1), {}, ()),
    ("stream", "of a stream", _CHAT, _STREAM, _IN_NO_TIME, (Capability.STREAMS,)),
    ("first_token", "for the first token", _CHAT, long_body(**_LONG, first_token_deadline_ms=1), {}, ()),
    ("completion", "on completions", _COMPLETIONS, _COMPLETION, _IN_NO_TIME, (Capability.COMPLETIONS,)),
    (
        "least_is_header",
        "by header, with more time by field",
        _CHAT,
        long_body(**_LONG, deadline_ms=600000),
        _IN_NO_TIME,
        (),
    ),
    (
        "least_is_field",
        "by field, with more time by header",
        _CHAT,
        long_body(**_LONG, deadline_ms=1),
        {"X-Deadline-Ms": "600000"},
        (),
    ),
)

VETOES: tuple[Case, ...] = (
    *(
        _case(
            f"unreachable_{name}",
            f"A deadline of one millisecond, {where}, is refused with 504",
            (_NEAR, _late("it", 1, body, headers, path)),
            (expect(is_out_of_time, "near", "it"),),
            _VETO,
            needs=needs,
            tries=2,
        )
        for name, where, path, body, headers, needs in _VETOED
    ),
    _case(
        "unreachable_costs_nothing",
        "A request that is refused for its deadline takes no work and is not billed",
        (
            _NEAR,
            rest_ask(),
            *(_late(name, 1, long_body(**_LONG), _IN_NO_TIME) for name in ("first", "second", "third")),
            rest_ask("after", 2),
        ),
        (
            *(expect(is_out_of_time, "near", name) for name in ("first", "second", "third")),
            expect(is_nothing_counted, "before", "after"),
        ),
        _VETO,
        needs=(Capability.METRICS, Capability.ADMIN),
        severity=Severity.WRONG_BILL,
        turn=Turn.ALONE,
        tries=2,
    ),
    _case(
        "unreachable_in_the_queue",
        "A deadline that the queue cannot meet is refused at once, as unreachable",
        (
            _NEAR,
            Ask(name="measured", copies=12, body=long_body(**_QUEUED), script=_QUEUED_SCRIPT),
            Ask(name="ahead", wave=1, copies=96, body=long_body(**_QUEUED), script=_QUEUED_SCRIPT),
            Ask(wave=1, delay_s=0.2, body=chat_body(max_tokens=1), headers={"X-Deadline-Ms": "300"}),
        ),
        (expect(is_foreseen, "near", "it"),),
        _VETO,
        turn=Turn.ALONE,
        tries=2,
    ),
)

_SOON = {"X-Deadline-Ms": Derived(triple_time, ("quick",))}


def _late_ask(*, wave: int = 1, copies: int = 1, is_stream: bool = True) -> Ask:
    body = long_body(max_tokens=900, stream=True) if is_stream else long_body(max_tokens=900)
    return Ask(wave=wave, copies=copies, body=body, headers=_SOON, script=LONG_SCRIPT)


EXPIRIES: tuple[Case, ...] = (
    _case(
        "expires_in_the_stream",
        "A stream whose deadline passes ends with an error event, without finish and [DONE]",
        (probe_ask("quick", 0), _late_ask()),
        (expect(is_visibly_cut, code="deadline_exceeded"), expect(is_in_time)),
        _EXPIRY,
        needs=(Capability.STREAMS,),
        severity=Severity.WRONG_DATA,
        why="A client takes half an answer for the whole.",
        turn=Turn.ALONE,
        tries=2,
    ),
    _case(
        "expires_before_the_end",
        "A whole answer that is not there in time is a 504, and comes in time",
        (probe_ask("quick", 0), _late_ask(is_stream=False)),
        (expect(is_timed_out), expect(is_in_time)),
        _EXPIRY,
        turn=Turn.ALONE,
        tries=2,
    ),
    _case(
        "expiry_frees",
        "What a request held is free when its deadline has passed",
        (probe_ask("quick", 0), rest_ask(wave=1), _late_ask(wave=2, copies=4), back_ask(3, with_memory=True)),
        (expect(took_too_long), expect(is_in_time), expect(is_back_to, "before", "after", with_memory=True)),
        _EXPIRY,
        needs=(Capability.STREAMS, Capability.METRICS, Capability.ADMIN),
        turn=Turn.ALONE,
        tries=2,
    ),
)

_BAD_VALUES: tuple[tuple[str, str, Any], ...] = (
    ("zero", "0", 0),
    ("negative", "-1", -1),
    ("word", "soon", "soon"),
    ("fraction", "1.5", 1.5),
    ("beyond_64_bits", "99999999999999999999999", 99999999999999999999999),
)

BAD_VALUES: tuple[Case, ...] = tuple(
    _case(
        f"bad_{name}",
        f"A deadline of {text} is refused, in the header and in the body",
        (
            Ask(name="header", body=chat_body(), headers={"X-Deadline-Ms": text}),
            Ask(name="first", body=chat_body(), headers={"X-First-Token-Deadline-Ms": text}),
            Ask(name="field", body=chat_body(deadline_ms=value)),
        ),
        tuple(
            expect(is_refused, ask, status=400, codes=("invalid_value",), kind="invalid_request_error", may_retry=False)
            for ask in ("header", "first", "field")
        ),
        "tidegate:deadlines.values",
        why="A misspelt deadline that is dropped silently is none.",
    )
    for name, text, value in _BAD_VALUES
)

CASES: tuple[Case, ...] = (*GENEROUS, *VETOES, *EXPIRIES, *BAD_VALUES)
