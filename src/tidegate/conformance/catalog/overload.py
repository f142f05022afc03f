"""Many requests at once: each is answered whole or refused in a way that a client understands."""

from typing import Any

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect, expect_over
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.load_asks import SPARE_S, back_ask, calm_ask, probe_ask, rest_ask
from tidegate.conformance.checks.load import is_back_to, is_no_slower_than_beside, is_not_held_up
from tidegate.conformance.checks.refusal import are_refused_alike
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.whole_answer import are_some_answered, is_answered_or_refused, is_whole_answer
from tidegate.conformance.probing.capability import Capability

_LOST = "Clients wait for answers that never come, or take cut-off ones for whole."
_SCRIPT = {"pieces": ["61"], "repeat": 8, "delays_s": [0.02]}
_STREAM = chat_body("Hi {marker}", max_tokens=8, stream=True)
_WHOLE = chat_body("Hi {marker}", max_tokens=8)


def _burst(name: str, copies: int, body: Any, *, wave: int = 0, **ask: Any) -> Ask:
    return Ask(name=name, wave=wave, copies=copies, body=body, script=_SCRIPT, **ask)


def _case(what: str, title: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...], **fields: Any) -> Case:
    settings: dict[str, Any] = {
        "why": _LOST,
        "clauses": ("openai:overload.answer",),
        "severity": Severity.BREAKS_CLIENTS,
        "needs": (Capability.CHAT, Capability.STREAMS),
        "turn": Turn.ALONE,
    }
    return Case(id=f"overload.{what}", title=title, asks=asks, expects=expects, **(settings | fields))


def _held(name: str) -> tuple[Expect, ...]:
    return (expect(is_answered_or_refused, name), expect_over(are_some_answered, name))


BURSTS: tuple[Case, ...] = (
    _case(
        "burst_of_32",
        "Of 32 streams at once each is whole or refused with 429 or 503",
        (_burst("many", 32, _STREAM),),
        _held("many"),
    ),
    _case(
        "burst_of_64",
        "Of 64 streams at once each is whole or refused with 429 or 503",
        (_burst("many", 64, chat_body("Hi {marker}", max_tokens=4, stream=True)),),
        _held("many"),
    ),
    _case(
        "burst_of_whole_answers",
        "Of 32 whole answers at once each is whole or refused with 429 or 503",
        (_burst("many", 32, _WHOLE),),
        _held("many"),
    ),
    _case(
        "burst_of_completions",
        "Of 32 completions at once each is whole or refused with 429 or 503",
        (_burst("many", 32, completion_body("Hi {marker}", max_tokens=8), path="/completions"),),
        _held("many"),
        needs=(Capability.COMPLETIONS,),
    ),
    _case(
        "mixed_burst",
        "Streams, whole answers and bad requests at once each get what is theirs",
        (
            _burst("streams", 12, _STREAM),
            _burst("wholes", 12, _WHOLE),
            Ask(name="bad", copies=8, body=chat_body(temperature="hot")),
        ),
        (*_held("streams"), *_held("wholes"), expect_over(are_refused_alike, "bad")),
    ),
    _case(
        "choices_at_once",
        "Eight requests for four choices at once are each whole or refused",
        (_burst("many", 8, chat_body("Hi {marker}", max_tokens=6, stream=True, n=4, temperature=1)),),
        (expect(is_answered_or_refused, "many", num_choices=4), expect_over(are_some_answered, "many")),
        needs=(Capability.CHAT, Capability.STREAMS, Capability.CHOICES),
    ),
)

_LONG_PROMPT = "{marker}: " + "The sea is salty because rivers carry minerals from the land into it. " * 30
_LONG = chat_body(_LONG_PROMPT, max_tokens=4)
"""No cache has read it before: the first word differs."""

AFTERWARDS: tuple[Case, ...] = (
    _case(
        "normal_afterwards",
        "After a burst a request is answered as before it",
        (probe_ask("quiet", 0), _burst("many", 32, _STREAM, wave=1), calm_ask(2), probe_ask("after", 3)),
        (expect(is_whole_answer, "after"), expect(is_not_held_up, "quiet", "after", spare_s=SPARE_S)),
        why="One burst leaves the server slow until it is restarted.",
    ),
    _case(
        "rest_afterwards",
        "After a burst nothing runs or waits any more, by the server's own metrics",
        (rest_ask(), _burst("many", 32, _STREAM, wave=1), back_ask(2)),
        (expect(is_back_to, "before", "after"),),
        needs=(Capability.CHAT, Capability.STREAMS, Capability.METRICS),
        clauses=("openai:http.closure",),
        severity=Severity.NUISANCE,
    ),
    _case(
        "short_beside_long",
        "A short request waits for two long prompts no longer than they take to read",
        (
            probe_ask("quiet", 0),
            Ask(name="alone", wave=1, body=_LONG),
            Ask(name="long", wave=2, copies=2, body=_LONG),
            probe_ask("short", 2, delay_s=0.1),
        ),
        (
            expect(is_answered_or_refused, "long"),
            expect(is_no_slower_than_beside, "quiet", "alone", "short", spare_s=SPARE_S, times=3.0),
        ),
        clauses=("openai:http.concurrency",),
        why="Two long prompts stop the service for all.",
        tries=2,
    ),
    _case(
        "list_under_load",
        "The list of models is answered while requests run",
        (
            _burst("many", 16, _STREAM),
            Ask(name="list", method="GET", path="/models", delay_s=0.1),
        ),
        (expect(has_status, "list", allowed=(200,)), *_held("many")),
        clauses=("openai:http.concurrency",),
        needs=(Capability.CHAT, Capability.STREAMS, Capability.MODEL_LIST),
    ),
)

_TIDEGATE: dict[str, Any] = {"profile": Profile.TIDEGATE, "clauses": ("tidegate:overload.refusal",)}

OURS: tuple[Case, ...] = (
    _case(
        "refusals_say_when",
        "Who is refused in a burst is told when to come again",
        (_burst("many", 48, _STREAM),),
        (expect(is_answered_or_refused, "many", says_when=True), expect_over(are_some_answered, "many")),
        why="Clients come again at once, all together, or never.",
        **_TIDEGATE,
    ),
    _case(
        "health_under_load",
        "Health is told while requests run",
        (
            _burst("many", 16, _STREAM),
            Ask(name="alive", method="GET", path="/healthz", place=Place.ROOT, delay_s=0.1),
            Ask(name="ready", method="GET", path="/health", place=Place.ROOT, delay_s=0.1),
        ),
        (
            expect(has_status, "alive", allowed=(200,)),
            expect(has_status, "ready", allowed=(200,)),
            *_held("many"),
        ),
        profile=Profile.TIDEGATE,
        clauses=("tidegate:listeners.public",),
        why="An orchestrator kills a server that is only busy.",
    ),
)

CASES: tuple[Case, ...] = (*BURSTS, *AFTERWARDS, *OURS)
