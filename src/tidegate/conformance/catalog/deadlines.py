"""Deadlines: what comes of a request whose time is limited (profile of our contract), and that nobody is harmed."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.load_asks import LONG_SCRIPT, back_ask, long_body, probe_ask, rest_ask
from tidegate.conformance.checks.deadline import (
    has_same_text,
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

GENEROUS: tuple[Case, ...] = (
    _case(
        "generous_header",
        "A deadline far away changes nothing",
        (
            Ask(name="plain", body=chat_body()),
            Ask(name="timed", wave=1, body=chat_body(), headers={"X-Deadline-Ms": "600000"}),
        ),
        (expect(is_whole_answer, "timed"), expect(has_same_text, "plain", "timed")),
        _GENEROUS,
        tries=2,
    ),
    _case(
        "generous_fields",
        "Deadlines in the body that are far away change nothing",
        (
            Ask(name="plain", body=chat_body()),
            Ask(name="timed", wave=1, body=chat_body(deadline_ms=600000, first_token_deadline_ms=500000)),
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

VETOES: tuple[Case, ...] = (
    *(
        _case(
            f"unreachable_{name}",
            f"A deadline of one millisecond, {where}, is refused with 504",
            (Ask(body=body, headers=headers, path=path),),
            (expect(is_out_of_time),),
            _VETO,
            needs=needs,
        )
        for name, where, path, body, headers, needs in (
            ("header", "by header", "/chat/completions", chat_body(), {"X-Deadline-Ms": "1"}, ()),
            ("field", "by field", "/chat/completions", chat_body(deadline_ms=1), {}, ()),
            (
                "stream",
                "of a stream",
                "/chat/completions",
                chat_body(stream=True),
                {"X-Deadline-Ms": "1"},
                (Capability.STREAMS,),
            ),
            ("first_token", "for the first token", "/chat/completions", chat_body(first_token_deadline_ms=1), {}, ()),
            (
                "completion",
                "on completions",
                "/completions",
                completion_body(),
                {"X-Deadline-Ms": "1"},
                (Capability.COMPLETIONS,),
            ),
            (
                "least_is_header",
                "by header, with more time by field",
                "/chat/completions",
                chat_body(deadline_ms=600000),
                {"X-Deadline-Ms": "1"},
                (),
            ),
            (
                "least_is_field",
                "by field, with more time by header",
                "/chat/completions",
                chat_body(deadline_ms=1),
                {"X-Deadline-Ms": "600000"},
                (),
            ),
        )
    ),
    _case(
        "unreachable_costs_nothing",
        "A request that is refused for its deadline takes no work and is not billed",
        (
            rest_ask(),
            Ask(wave=1, copies=3, body=chat_body(), headers={"X-Deadline-Ms": "1"}),
            rest_ask("after", 2),
        ),
        (expect(is_out_of_time), expect(is_nothing_counted, "before", "after")),
        _VETO,
        needs=(Capability.METRICS, Capability.ADMIN),
        severity=Severity.WRONG_BILL,
        turn=Turn.ALONE,
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
        (expect(took_too_long), expect(is_timed_out), expect(is_in_time)),
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
