"""Idempotency-Key: one operation runs once, however often its request is sent."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived, Leaving, Manner, Until
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect, expect_over
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.load_asks import LONG_SCRIPT, long_body, metrics_ask, rest_ask
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.checks.replay import (
    are_one_run,
    are_other_runs,
    are_replays_of_one,
    has_counted,
    is_fresh,
    is_nothing_counted,
    is_replay_of,
    is_some_duplicate_refused,
)
from tidegate.conformance.checks.status import has_same_status, has_status
from tidegate.conformance.checks.whole_answer import is_whole_answer
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.wire.request_key import FRESH_KEY, key_of

_FRESH = {"Idempotency-Key": FRESH_KEY}
_SAME = {"Idempotency-Key": key_of("first")}
_TWICE = "A client that retries after a lost connection pays twice, or gets another answer than the one it acted on."
_LATE_SCRIPT = {"pieces": ["6f6e63650a"], "repeat": 5, "delays_s": [0.2]}


def _case(
    what: str,
    title: str,
    asks: tuple[Ask, ...],
    expects: tuple[Expect, ...],
    *,
    clause: str = "idempotency.replay",
    needs: tuple[Capability, ...] = (),
    **fields: Any,
) -> Case:
    settings: dict[str, Any] = {"why": _TWICE, "severity": Severity.WRONG_BILL, "profile": Profile.TIDEGATE}
    return Case(
        id=f"idempotency.{what}",
        title=title,
        clauses=(f"tidegate:{clause}",),
        needs=(Capability.CHAT, Capability.IDEMPOTENCY, *needs),
        asks=asks,
        expects=expects,
        **(settings | fields),
    )


def _pair(body: Any, other: Any = None, **fields: Any) -> tuple[Ask, Ask]:
    """The same request twice, under one key; or with another body the second time."""
    again = fields.pop("again", _SAME)
    return (
        Ask(name="first", body=body, headers=_FRESH, **fields),
        Ask(name="second", wave=1, body=body if other is None else other, headers=again, **fields),
    )


_REPLAYED = (expect(is_whole_answer, "first"), expect(is_replay_of, "first", "second"))
_REUSED = (
    expect(is_whole_answer, "first"),
    expect(
        is_refused,
        "second",
        status=422,
        codes=("idempotency_key_reuse",),
        kind="idempotency_error",
        may_retry=False,
    ),
)

REPLAYS: tuple[Case, ...] = (
    _case("replay_whole", "The same request under the same key gets the same bytes", _pair(chat_body()), _REPLAYED),
    _case(
        "replay_stream",
        "A streamed answer is replayed event by event",
        _pair(chat_body(stream=True, stream_options={"include_usage": True})),
        _REPLAYED,
        needs=(Capability.STREAMS,),
    ),
    _case(
        "replay_sampled",
        "A sampled answer is replayed, not sampled again",
        _pair(chat_body("Write a random word.", temperature=1.5, n=2)),
        _REPLAYED,
        needs=(Capability.CHOICES,),
    ),
    _case(
        "replay_completion",
        "Completions are replayed as chat is",
        _pair(completion_body(), path="/completions"),
        _REPLAYED,
        needs=(Capability.COMPLETIONS,),
    ),
    _case(
        "canonical_json",
        "A body with its members in another order is the same body",
        _pair(chat_body(seed=1), dict(reversed(chat_body(seed=1).items()))),
        _REPLAYED,
        why="Clients in languages whose maps have no order cannot retry: every retry looks like another request.",
    ),
    _case(
        "quoted_key",
        "A key in quotes is the key without them",
        _pair(chat_body(), again={"Idempotency-Key": key_of("first", template='"{value}"')}),
        _REPLAYED,
    ),
    _case(
        "many_replays",
        "Eight replays at once all get the same bytes",
        (
            Ask(name="first", body=chat_body(), headers=_FRESH),
            Ask(name="second", wave=1, copies=8, body=chat_body(), headers=_SAME),
        ),
        (expect(is_replay_of, "first", "second"), expect_over(are_replays_of_one, "second")),
    ),
    _case(
        "not_counted_again",
        "A replay takes no work of the engine and is not counted again",
        (
            Ask(name="first", body=chat_body(), headers=_FRESH),
            rest_ask(wave=1),
            Ask(name="second", wave=2, body=chat_body(), headers=_SAME),
            metrics_ask("after", 3),
        ),
        (*_REPLAYED, expect(is_nothing_counted, "before", "after")),
        needs=(Capability.METRICS, Capability.ADMIN),
        turn=Turn.ALONE,
    ),
)

LIVE: tuple[Case, ...] = (
    _case(
        "live_duplicate",
        "While the first request runs, its twins are told so and when to come again",
        (
            Ask(name="key", method="GET", path="/models", headers={"X-Request-Id": FRESH_KEY}),
            Ask(
                wave=1,
                copies=4,
                body=long_body(max_tokens=48, stream=True),
                headers={"Idempotency-Key": key_of("key", header="X-Request-Id")},
                script=_LATE_SCRIPT,
            ),
        ),
        (expect_over(are_one_run, "it"), expect_over(is_some_duplicate_refused, "it")),
        clause="idempotency.live",
        needs=(Capability.STREAMS,),
        tries=2,
    ),
    _case(
        "one_run",
        "Requests with one key, sent at once, make one run of the engine",
        (
            rest_ask(),
            Ask(name="key", method="GET", path="/models", headers={"X-Request-Id": FRESH_KEY}),
            Ask(
                wave=1,
                copies=6,
                body=chat_body(),
                headers={"Idempotency-Key": key_of("key", header="X-Request-Id")},
                script=_LATE_SCRIPT,
            ),
            rest_ask("after", 2),
        ),
        (expect_over(are_one_run, "it"), expect(has_counted, "before", "after", runs=1)),
        clause="idempotency.live",
        needs=(Capability.METRICS, Capability.ADMIN),
        turn=Turn.ALONE,
    ),
    _case(
        "two_keys",
        "The same body under two keys runs twice",
        (
            Ask(name="first", body=chat_body(), headers=_FRESH),
            Ask(name="second", wave=1, body=chat_body(), headers=_FRESH),
        ),
        (expect(are_other_runs, "first", "second"),),
        severity=Severity.WRONG_DATA,
    ),
    _case(
        "no_key",
        "The same body without a key runs each time",
        (Ask(name="first", body=chat_body()), Ask(name="second", wave=1, body=chat_body())),
        (expect(are_other_runs, "first", "second"),),
        severity=Severity.WRONG_DATA,
    ),
)

REUSED: tuple[Case, ...] = (
    _case(
        "other_body",
        "The same key with another body is refused",
        _pair(chat_body(), chat_body("Name three rivers.")),
        _REUSED,
        clause="idempotency.reuse",
        severity=Severity.WRONG_DATA,
    ),
    _case(
        "other_form",
        "The same key, streamed instead of whole, is another request",
        _pair(chat_body(), chat_body(stream=True)),
        _REUSED,
        clause="idempotency.reuse",
        needs=(Capability.STREAMS,),
        severity=Severity.WRONG_DATA,
    ),
    _case(
        "other_path",
        "The same key on another path is another request",
        (
            Ask(name="first", body=chat_body(), headers=_FRESH),
            Ask(name="second", wave=1, path="/completions", body=completion_body(), headers=_SAME),
        ),
        _REUSED,
        clause="idempotency.reuse",
        needs=(Capability.COMPLETIONS,),
        severity=Severity.WRONG_DATA,
    ),
)

_NOT_IN_USE = Until(has_status, within_s=10.0, args={"allowed": (200,)})

AFRESH: tuple[Case, ...] = (
    _case(
        "after_refusal",
        "A key whose request was refused runs afresh",
        _pair(chat_body(temperature=9), chat_body()),
        (expect(has_status, "first", allowed=(400,)), expect(is_whole_answer, "second"), expect(is_fresh, "second")),
        clause="idempotency.afresh",
        why="A client that mends its request under the same key gets the old error for a day.",
        severity=Severity.BREAKS_CLIENTS,
    ),
    _case(
        "refusal_is_not_recorded",
        "A refusal is decided again each time, not replayed",
        _pair(chat_body(temperature=9)),
        (
            expect(has_status, "first", allowed=(400,)),
            expect(has_status, "second", allowed=(400,)),
            expect(is_fresh, "second"),
        ),
        clause="idempotency.afresh",
    ),
    _case(
        "after_cancellation",
        "A key whose client left runs afresh, and the answer is whole",
        (
            Ask(
                name="first",
                body=long_body(max_tokens=32, stream=True),
                headers=_FRESH,
                script=LONG_SCRIPT | {"repeat": 32},
                manner=Manner(leaving=Leaving.AFTER_EVENTS, events=2),
            ),
            Ask(
                name="second",
                wave=1,
                body=long_body(max_tokens=32, stream=True),
                headers=_SAME,
                script=LONG_SCRIPT | {"repeat": 32},
                until=_NOT_IN_USE,
            ),
        ),
        (expect(is_whole_answer, "second"),),
        clause="idempotency.afresh",
        needs=(Capability.STREAMS,),
        severity=Severity.WRONG_DATA,
        why="A cut-off answer is replayed as the whole one.",
    ),
)


def _bad_key(what: str, title: str, key: str | tuple[Derived, ...]) -> Case:
    refused = expect(is_refused, status=400, codes=("invalid_value",), kind="invalid_request_error", may_retry=False)
    return _case(
        what,
        title,
        (Ask(body=chat_body(), headers={"Idempotency-Key": key}),),
        (refused,),
        clause="idempotency.key",
        why="A key that is cut or dropped silently protects nothing.",
        severity=Severity.NUISANCE,
    )


KEYS: tuple[Case, ...] = (
    _bad_key("empty_key", "An empty key is refused", ""),
    _bad_key("empty_quoted_key", "An empty key in quotes is refused", '""'),
    _bad_key("long_key", "A key of 256 characters is refused", "k" * 256),
    _bad_key("key_with_space", "A key with a space is refused", "two words"),
    _bad_key("key_beyond_ascii", "A key beyond ASCII is refused", "sch\u00fcssel"),
    _bad_key("two_headers", "Two keys on one request are refused", (FRESH_KEY, FRESH_KEY)),
    _case(
        "longest_key",
        "A key of 255 characters is taken",
        (
            Ask(
                name="first",
                body=chat_body(),
                headers={"Idempotency-Key": Derived(FRESH_KEY.make, (), {"prefix": "k" * 231})},
            ),
            Ask(name="second", wave=1, body=chat_body(), headers=_SAME),
        ),
        _REPLAYED,
        clause="idempotency.key",
    ),
    Case(
        id="idempotency.unknown_header",
        title="A request with an Idempotency-Key is answered, whether the server knows the header or not",
        why="Clients of several servers send the header to all of them.",
        clauses=("openai:headers.unknown",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(
            Ask(name="plain", body=chat_body()),
            Ask(body=chat_body(), headers=_FRESH),
            Ask(name="plain_list", method="GET", path="/models"),
            Ask(name="list", method="GET", path="/models", headers=_FRESH),
        ),
        expects=(
            expect(has_same_status, "plain", "it"),
            expect(has_same_status, "plain_list", "list"),
        ),
    ),
)

CASES: tuple[Case, ...] = (*REPLAYS, *LIVE, *REUSED, *AFRESH, *KEYS)
