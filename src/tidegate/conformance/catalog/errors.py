"""How what is wrong with a request is told, on every path that a request can fail on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.errors import (
    forbids_retry,
    has_error_object,
    has_nullable_members,
    has_text_code,
    is_json_error,
    is_no_success_with_error,
    is_refused,
    shows_no_internals,
)
from tidegate.conformance.checks.sturdiness import is_answered
from tidegate.conformance.probing.capability import Capability

FAULTY = (400, 422)
_CHAT = (Capability.CHAT,)


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the body without one member."""
    return {key: value for key, value in body.items() if key != name}


def _shaped(
    what: str,
    ask: Ask,
    allowed: tuple[int, ...],
    title: str,
    why: str,
    needs: tuple[Capability, ...] = _CHAT,
    severity: Severity = Severity.BREAKS_CLIENTS,
) -> Case:
    """One path on which a request fails: the status, the whole error object, and its media type."""
    return Case(
        id=f"errors.{what}",
        title=title,
        why=why,
        clauses=(
            "openai:errors.object",
            "openai:errors.status",
            "openai:errors.media_type",
            *(("openai:errors.blame",) if 200 not in allowed else ()),
        ),
        severity=severity,
        needs=needs,
        asks=(ask,),
        expects=(
            expect(is_refused, allowed=allowed) if 200 not in allowed else expect(is_no_success_with_error),
            expect(has_error_object),
            expect(is_json_error),
        ),
    )


def _also(clause: str, case: Case) -> Case:
    """Returns the case with a clause of its own besides those of all errors."""
    return replace(case, clauses=(*case.clauses, clause))


def _beside_the_api(what: str, ask: Ask, title: str) -> Case:
    """A request that is none of the API's operations: the public contract says nothing of its answer, ours does."""
    return replace(
        _shaped(
            what,
            ask,
            (404, 405),
            title,
            "Clients show `error.message`; a page of HTML or `detail` shows as nothing.",
            (),
            Severity.NUISANCE,
        ),
        clauses=("tidegate:errors.shape",),
        profile=Profile.TIDEGATE,
    )


_OBJECT = "Clients read `error.message`; without it people see a bare status."
_BY_PATH = (
    _shaped(
        "bad_json",
        Ask(raw=b'{"model": "{model}", "messages": ['),
        FAULTY,
        "A body that is no JSON is refused with an error object",
        _OBJECT,
    ),
    _shaped(
        "not_an_object",
        Ask(raw=b'["hello"]'),
        FAULTY,
        "A body that is JSON but no object is refused with an error object",
        "A server that indexes into it fails, and the caller is told to repeat.",
    ),
    _shaped("empty_body", Ask(raw=b""), FAULTY, "An empty body is refused with an error object", _OBJECT),
    _shaped(
        "content_type",
        Ask(body=chat_body(max_tokens=1), headers={"Content-Type": "text/plain"}),
        (200, 400, 415, 422),
        "A body of another media type is refused with an error object, if it is refused",
        _OBJECT,
    ),
    _also(
        "openai:parameters.required",
        _shaped(
            "no_messages",
            Ask(body=without(chat_body(), "messages")),
            FAULTY,
            "A chat request without messages is refused with an error object",
            "A caller whose messages got lost is answered as if nothing were wrong.",
        ),
    ),
    _also(
        "openai:parameters.type",
        _shaped(
            "wrong_type",
            Ask(body=chat_body(messages="hello")),
            FAULTY,
            "A field of the wrong type is refused with an error object",
            _OBJECT,
        ),
    ),
    _shaped(
        "wrong_value",
        Ask(body=chat_body(temperature=-1)),
        (200, *FAULTY),
        "A value out of range is refused with an error object, if it is refused",
        _OBJECT,
    ),
    _also(
        "openai:models.unknown",
        _shaped(
            "unknown_model",
            Ask(body=chat_body(model="no-such-model-{marker}")),
            (400, 404),
            "A model that is not served is refused, and nothing else answers in its place",
            "The caller pays for, and trusts, another model than was named.",
            severity=Severity.WRONG_DATA,
        ),
    ),
    _also(
        "openai:models.unknown",
        _shaped(
            "unknown_model_streamed",
            Ask(body=chat_body(model="no-such-model-{marker}", stream=True)),
            (400, 404),
            "A model that is not served is refused by the status where a stream is asked for, too",
            "A stream that begins with 200 hides from balancers and clients that nothing will come.",
            (Capability.STREAMS, Capability.MODEL_CHECK),
        ),
    ),
    _also(
        "openai:parameters.type",
        _shaped(
            "before_stream",
            Ask(body=chat_body(messages="hello", stream=True)),
            FAULTY,
            "What is wrong with a request for a stream is told by the status, as JSON",
            "Clients that got a 200 do not look for an error object, or read it as text.",
            (Capability.STREAMS,),
        ),
    ),
    _shaped(
        "completions_bad_json",
        Ask(path="/completions", raw=b"{"),
        FAULTY,
        "Completions refuse what is no JSON with an error object",
        _OBJECT,
        (Capability.COMPLETIONS,),
    ),
    _also(
        "openai:parameters.type",
        _shaped(
            "completions_wrong_type",
            Ask(path="/completions", body=completion_body({"a": 1})),
            FAULTY,
            "Completions refuse a prompt of the wrong type with an error object",
            _OBJECT,
            (Capability.COMPLETIONS,),
        ),
    ),
    _beside_the_api(
        "unknown_route", Ask(path="/no-such-route", body={}), "An unknown route is told with an error object"
    ),
    _beside_the_api(
        "wrong_method", Ask(method="GET", path="/chat/completions"), "A wrong method is told with an error object"
    ),
    _shaped(
        "unknown_model_lookup",
        Ask(method="GET", path="/models/no-such-model-{marker}"),
        (404,),
        "Looking up a model that is not there is told with an error object",
        _OBJECT,
        (Capability.MODEL_LOOKUP,),
        Severity.NUISANCE,
    ),
)

SEVERAL = (
    Ask(name="bad_json", raw=b"{"),
    Ask(name="missing", body=without(chat_body(), "messages")),
    Ask(name="wrong_type", body=chat_body(max_tokens={"a": []})),
    Ask(name="wrong_value", body=chat_body(temperature=-1)),
    Ask(name="unknown_model", body=chat_body(model="no-such-model-{marker}")),
    Ask(name="unknown_route", path="/no-such-route", body={}),
)
"""Requests that fail, each in another part of a server."""
_NAMES = tuple(ask.name for ask in SEVERAL)
_OF_THE_API = tuple(ask for ask in SEVERAL if ask.name != "unknown_route")
"""The public contract describes the errors of its operations, and nothing else is one."""
_ODD = (
    Ask(name="message_type", body=chat_body(messages=[17, None, [[]]])),
    Ask(name="part_type", body=chat_body(messages=[{"role": "user", "content": [{"type": 5}]}])),
    Ask(name="tool_type", body=chat_body(tools=[{"type": "function", "function": "x"}])),
    Ask(name="format_type", body=chat_body(response_format={"type": "json_schema", "json_schema": {"name": 3}})),
)


def _on_each(names: tuple[str, ...], *checks: Any) -> tuple[Expect, ...]:
    return tuple(expect(check, name) for name in names for check in checks)


_OVER_PATHS = (
    Case(
        id="errors.nullable_members",
        title="Every error has `param` and `code`, null where there is nothing to say",
        why="Clients made from the schema read them without asking whether they are there.",
        clauses=("openai:errors.object",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=_OF_THE_API,
        expects=_on_each(tuple(ask.name for ask in _OF_THE_API), has_nullable_members),
    ),
    Case(
        id="errors.text_code",
        title="`error.code` is a text or null, never a number",
        why="`code == 'context_length_exceeded'` is how clients tell errors apart; with numbers it never holds.",
        clauses=("openai:errors.code",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=_OF_THE_API,
        expects=_on_each(tuple(ask.name for ask in _OF_THE_API), has_text_code),
    ),
    Case(
        id="errors.no_internals",
        title="No error shows how the server is built or where it lies",
        why="Tracebacks and paths help attackers, and tell callers nothing.",
        clauses=("openai:errors.object",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=(*SEVERAL, *_ODD),
        expects=_on_each((*_NAMES, *(ask.name for ask in _ODD)), shows_no_internals),
    ),
    Case(
        id="errors.blame",
        title="Values of types that nobody expects are the request's fault, not the server's",
        why="Clients repeat on 5xx, and balancers take the server out; nothing of that mends the request.",
        clauses=("openai:errors.blame", "openai:parameters.messages", "openai:parameters.unions"),
        severity=Severity.BREAKS_CLIENTS,
        needs=_CHAT,
        asks=_ODD,
        expects=(
            *(expect(is_refused, ask.name, allowed=FAULTY) for ask in _ODD[:2]),
            *(expect(is_answered, ask.name, besides=(501,)) for ask in _ODD[2:]),
        ),
    ),
    Case(
        id="errors.no_success",
        title="No answer of status 200 tells an error",
        why="Clients take a 200 for an answer: the error is read as a missing text, or billed.",
        clauses=("openai:errors.status",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_CHAT,
        asks=(*SEVERAL, Ask(name="streamed", body=chat_body(messages="hello", stream=True))),
        expects=_on_each((*_NAMES, "streamed"), is_no_success_with_error),
    ),
    Case(
        id="errors.no_retry",
        title="Requests that must be mended first are not sent again by clients",
        why="Clients obey `x-should-retry` and `retry-after`: three times the traffic, and the same answer.",
        clauses=("openai:errors.retry",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=SEVERAL,
        expects=tuple(expect(forbids_retry, name, must_say=False) for name in _NAMES),
    ),
)

CASES = (*_BY_PATH, *_OVER_PATHS)
