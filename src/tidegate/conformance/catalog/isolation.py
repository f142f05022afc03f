"""Requests that run at the same time have nothing to do with each other."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, Turn, expect, expect_over
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.own_answer import (
    echoes_request_id,
    has_no_foreign_marker,
    has_own_copy,
    has_own_marker,
    have_own_ids,
    is_json_of,
    is_unmoved,
    keep_one_id,
    keeps_its_budget,
)
from tidegate.conformance.checks.refusal import are_refused_alike
from tidegate.conformance.checks.whole_answer import is_answered_or_refused, is_whole_answer
from tidegate.conformance.probing.capability import Capability

_LEAK = "A client gets what another client's request made: wrong, and perhaps secret."
_STREAMS = (Capability.CHAT, Capability.STREAMS)


def _case(what: str, title: str, asks: tuple[Ask, ...], expects: tuple[Expect, ...], **fields: Any) -> Case:
    settings: dict[str, Any] = {
        "why": _LEAK,
        "clauses": ("openai:isolation.own",),
        "severity": Severity.WRONG_DATA,
        "needs": (Capability.CHAT,),
        "turn": Turn.ALONE,
    }
    return Case(id=f"isolation.{what}", title=title, asks=asks, expects=expects, **(settings | fields))


def _choice_format() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "enum": ["{marker}"]}},
        "required": ["word"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "word", "strict": True, "schema": schema}}


def _marked(stream: bool) -> dict[str, Any]:
    body = chat_body("Answer in JSON with the word {marker}.", max_tokens=48, response_format=_choice_format())
    return body | ({"stream": True} if stream else {})


_MARKED_SCRIPT = {"pieces": ["7b22776f7264223a22", "{marker_hex}", "227d"]}
_WORD_SCRIPT = {"pieces": ["{marker_hex}"]}
_MARKERS = (expect_over(has_own_marker, "it"), expect_over(has_no_foreign_marker, "it"))
_ECHO = completion_body("Remember the word {marker}.", max_tokens=4, echo=True)

MARKED: tuple[Case, ...] = (
    _case(
        "constrained_answers",
        "Of sixteen answers that a schema forces to hold their own word, each holds its own and no other",
        (Ask(copies=16, body=_marked(False), script=_MARKED_SCRIPT),),
        _MARKERS,
        needs=(Capability.CHAT, Capability.JSON_SCHEMA),
    ),
    _case(
        "constrained_streams",
        "Of sixteen streams that a schema forces to hold their own word, each holds its own and no other",
        (Ask(copies=16, body=_marked(True), script=_MARKED_SCRIPT),),
        _MARKERS,
        needs=(*_STREAMS, Capability.JSON_SCHEMA),
    ),
    _case(
        "choices_of_words",
        "Of sixteen answers that may be one word only, each is its own word",
        (
            Ask(
                copies=16,
                body=chat_body("Say {marker}.", structured_outputs={"choice": ["{marker}"]}),
                script=_WORD_SCRIPT,
            ),
        ),
        _MARKERS,
        needs=(Capability.CHAT, Capability.STRUCTURED_OUTPUTS),
        profile=Profile.TIDEGATE,
    ),
    _case(
        "echoed_prompts",
        "Of sixteen completions that echo their prompts, each echoes its own",
        (Ask(copies=16, path="/completions", body=_ECHO),),
        _MARKERS,
        needs=(Capability.COMPLETIONS, Capability.ECHO),
    ),
    _case(
        "no_foreign_word",
        "No answer holds a word that stands in another request only",
        (
            Ask(
                copies=16,
                body=chat_body("Repeat after me, three times: {marker}", max_tokens=24, stream=True),
                script=_WORD_SCRIPT,
            ),
        ),
        (expect(is_answered_or_refused), expect_over(has_no_foreign_marker, "it")),
        needs=_STREAMS,
    ),
    _case(
        "scripted_streams",
        "Of ten streams at once each is its own from end to end",
        (
            Ask(
                copies=10,
                body=chat_body(max_tokens=40, stream=True),
                script={"pieces": ["3{copy}"], "repeat": 40, "delays_s": [0.002]},
            ),
        ),
        (expect_over(has_own_copy, "it", repeat=40),),
        needs=(*_STREAMS, Capability.SCRIPT),
    ),
)

_SHARED_ID = "5f0c8a52-3c1e-4c67-9d5b-7a1f6e2d9b40"
"""A UUID: some servers take no other names, and may."""
_SHARED = {"X-Request-Id": _SHARED_ID}

IDS: tuple[Case, ...] = (
    _case(
        "ids",
        "Sixteen answers at once have sixteen ids",
        (Ask(copies=16, body=chat_body(max_tokens=4, stream=True)),),
        (expect_over(have_own_ids, "it"), expect(keep_one_id)),
        needs=_STREAMS,
    ),
    _case(
        "ids_of_whole_answers",
        "Sixteen whole answers at once have sixteen ids",
        (Ask(copies=16, body=chat_body(max_tokens=4)),),
        (expect_over(have_own_ids, "it"),),
    ),
    _case(
        "shared_request_id",
        "Requests at once that share an X-Request-Id are all answered",
        (Ask(copies=6, body=chat_body(max_tokens=12, stream=True), headers=_SHARED),),
        (expect(is_answered_or_refused), expect(keep_one_id)),
        needs=_STREAMS,
        why="A proxy that names its requests makes servers mix them up, or refuse them.",
        severity=Severity.BREAKS_CLIENTS,
    ),
    _case(
        "echoed_request_id",
        "Requests at once that share an X-Request-Id each get it back",
        (Ask(copies=6, body=chat_body(max_tokens=12, stream=True), headers=_SHARED),),
        (expect(is_whole_answer), expect(echoes_request_id, value=_SHARED_ID)),
        needs=_STREAMS,
        profile=Profile.TIDEGATE,
        clauses=("tidegate:isolation.request_id",),
        severity=Severity.NUISANCE,
        why="Traces lose their requests.",
    ),
)

_QUESTION = "List the days of the week, separated by commas."
_TEXT = {"pieces": [byte.encode().hex() for byte in "Monday, Tuesday, Wednesday."]}


def _beside(what: str, title: str, needs: tuple[Capability, ...], script: Any = None, **parameters: Any) -> Case:
    """A plain request alone, then beside six with other parameters."""
    plain = chat_body(_QUESTION, max_tokens=24)
    return _case(
        what,
        title,
        (
            Ask(name="alone", body=plain, script=_TEXT),
            Ask(name="other", wave=1, copies=6, body=plain | parameters, script=script or _TEXT),
            Ask(name="beside", wave=1, copies=2, body=plain, script=_TEXT),
        ),
        (expect(is_whole_answer, "beside"), expect(is_unmoved, "alone", "beside", "other")),
        needs=(Capability.CHAT, *needs),
        why="What one client asks for changes the answers of others.",
        tries=2,
    )


NEIGHBOURS: tuple[Case, ...] = (
    _beside("stop", "A stop string of one request ends no other", (), stop=["d", "a"]),
    _beside("max_tokens", "The token limit of one request ends no other", (), max_tokens=2),
    _beside(
        "logit_bias",
        "A bias of one request moves no other",
        (Capability.LOGIT_BIAS,),
        script={"pieces": ["78"], "repeat": 20},
        logit_bias={"100": 100},
    ),
    _beside(
        "seeded",
        "Sampling of one request at a high temperature moves no other",
        (Capability.SEED,),
        script={"pieces": ["79"], "repeat": 20},
        temperature=2,
        seed=7,
    ),
    _case(
        "budgets",
        "Requests at once with other token limits each keep their own",
        tuple(
            Ask(
                name=f"of{count}",
                copies=3,
                body=chat_body(_QUESTION, max_tokens=count),
                script={"pieces": ["61"], "repeat": 60},
            )
            for count in (1, 3, 7, 15)
        ),
        tuple(expect(keeps_its_budget, f"of{count}", max_tokens=count) for count in (1, 3, 7, 15)),
        needs=(Capability.CHAT, Capability.TOKEN_LIMIT),
        why="What one client asks for changes the answers of others.",
    ),
    _case(
        "constrained_beside_plain",
        "A schema of one request holds its own answer and no other",
        (
            Ask(name="alone", body=chat_body(_QUESTION, max_tokens=24), script=_TEXT),
            Ask(
                name="other",
                wave=1,
                copies=4,
                body=_marked(False),
                script={"pieces": [byte.encode().hex() for byte in '{"word":"x"}']},
            ),
            Ask(name="beside", wave=1, copies=2, body=chat_body(_QUESTION, max_tokens=24), script=_TEXT),
        ),
        (expect(is_json_of, "other", name="word"), expect(is_unmoved, "alone", "beside", "other")),
        needs=(Capability.CHAT, Capability.JSON_SCHEMA),
        tries=2,
    ),
    _case(
        "bad_beside_good",
        "A bad request fails alone",
        (
            Ask(name="good", copies=6, body=chat_body(max_tokens=8, stream=True)),
            Ask(name="bad", copies=6, body=chat_body(temperature="hot", stream=True)),
        ),
        (expect(is_answered_or_refused, "good"), expect_over(are_refused_alike, "bad")),
        needs=_STREAMS,
        severity=Severity.BREAKS_CLIENTS,
        why="One client's mistake breaks the answers of others.",
    ),
)

CASES: tuple[Case, ...] = (*MARKED, *IDS, *NEIGHBOURS)
