"""Limits: what is published is allowed, one more is refused, and the refusal says by how much."""

from dataclasses import dataclass
from typing import Any

from tidegate.conformance.ask import Ask, Derived, Leaving, Manner
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.checks.bounds import passes_limit, tells_published_limit
from tidegate.conformance.checks.errors import has_error_object, is_refused, is_told
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.limit_bodies import fields_at, length_at, over_long_prompt, path_at, rest_of_context
from tidegate.conformance.probing.capability import Capability

_CONTRACT = Ask(name="contract", method="GET", path="/contract")
_OWN = (Capability.CONTRACT,)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit on what a body holds. `param`: the field that is named; None: the contract names none."""

    name: str
    says: str
    param: str | None
    why: str
    code: str = "invalid_value"
    path: str = "/chat/completions"
    needs: tuple[Capability, ...] = _OWN


_GRAMMAR = (*_OWN, Capability.JSON_SCHEMA)
_SCHEMA = "response_format.json_schema.schema"
_LIMITS = (
    _Limit("json_depth", "the nesting of a body", None, "A parser that recurses falls over deep bodies."),
    _Limit("messages", "messages", "messages", "Rendering a million messages holds up everybody's."),
    _Limit("prompts", "prompts", "prompt", "One request takes every place in the queue.", path="/completions"),
    _Limit("choices", "choices", "n", "One request takes every sequence of the engine."),
    _Limit("stop_strings", "stop strings", "stop", "Strings past the limit are dropped, and the text runs on."),
    _Limit("logit_bias_entries", "entries of logit_bias", "logit_bias", "Every step of every request gets slower."),
    _Limit("tools", "tools", "tools", "Tools past the limit are dropped, and never called."),
    _Limit("tool_bytes", "the bytes of tools", "tools", "Descriptions fill the context, and the caller pays for it."),
    _Limit(
        "schema_bytes",
        "the bytes of a schema",
        _SCHEMA,
        "A schema compiles for minutes.",
        "grammar_too_complex",
        needs=_GRAMMAR,
    ),
    _Limit(
        "schema_depth",
        "the nesting of a schema",
        _SCHEMA,
        "A schema compiles for minutes.",
        "grammar_too_complex",
        needs=_GRAMMAR,
    ),
)


def _base(path: str) -> dict[str, Any]:
    return chat_body("x") if path == "/chat/completions" else completion_body("x")


def _case(row: _Limit) -> Case:
    def ask(name: str, extra: int) -> Ask:
        args = {"name": row.name, "extra": extra, "base": {**_base(row.path), "model": "{model}"}}
        return Ask(name=name, path=row.path, body=Derived(fields_at, ("contract",), args), wave=1)

    told: dict[str, Any] = {"status": 400, "code": row.code} | ({} if row.param is None else {"param": row.param})
    return Case(
        id=f"limits.{row.name}",
        title=f"As much as is published is allowed, one more is refused by its name: {row.says}",
        why=row.why,
        clauses=("tidegate:limits.published",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=row.needs,
        asks=(_CONTRACT, ask("at", 0), ask("beyond", 1)),
        expects=(
            expect(passes_limit, "at", name=row.name),
            expect(is_told, "beyond", **told),
            expect(tells_published_limit, "contract", "beyond", name=row.name),
        ),
    )


def _own(what: str, title: str, why: str, asks: tuple[Ask, ...], told: dict[str, Any], extra: int | None = 1) -> Case:
    return Case(
        id=f"limits.{what}",
        title=title,
        why=why,
        clauses=("tidegate:limits.published",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=(_CONTRACT, *asks),
        expects=(
            expect(is_told, "beyond", **told),
            expect(tells_published_limit, "contract", "beyond", name=what, extra=extra),
        ),
    )


_SHORT = chat_body("x", max_tokens=1)
_LONG = Derived(over_long_prompt, ("list",), {"base": chat_body("x", max_tokens=1)})
_STREAMED = Derived(over_long_prompt, ("list",), {"base": chat_body("x", max_tokens=1, stream=True)})
_LIST = Ask(name="list", method="GET", path="/models")
_AFTER = Ask(name="after", body=_SHORT, wave=2)

_CONTEXT = (
    Case(
        id="limits.long_prompt",
        title="A prompt that is longer than the context is refused, not cut, and the next request is answered",
        why="A prompt that is cut in silence loses its question, or its rules.",
        clauses=("openai:parameters.limit", "openai:errors.blame", "openai:errors.object"),
        severity=Severity.WRONG_DATA,
        needs=(Capability.CHAT,),
        asks=(_LIST, Ask(name="long", body=_LONG, wave=1), _AFTER),
        expects=(
            expect(is_refused, "long", allowed=(400, 413, 422)),
            expect(has_error_object, "long"),
            expect(has_status, "after", allowed=(200,)),
        ),
    ),
    Case(
        id="limits.long_prompt_streamed",
        title="A prompt that is longer than the context is refused before a stream begins",
        why="Clients that got a 200 read an empty answer.",
        clauses=("openai:parameters.limit", "openai:errors.status", "openai:errors.blame", "openai:errors.object"),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.STREAMS,),
        asks=(_LIST, Ask(name="long", body=_STREAMED, wave=1), _AFTER),
        expects=(
            expect(is_refused, "long", allowed=(400, 413, 422)),
            expect(has_error_object, "long"),
            expect(has_status, "after", allowed=(200,)),
        ),
    ),
    Case(
        id="limits.context_length",
        title="Prompt and answer may fill the context to the last token; one more is told with both numbers",
        why="Callers that count tokens lose one, or are cut by one.",
        clauses=("tidegate:limits.published", "openai:parameters.limit"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=(
            _CONTRACT,
            Ask(name="short", body=_SHORT),
            Ask(
                name="at",
                body=Derived(rest_of_context, ("contract", "short"), {"extra": 0, "base": {**_SHORT, "stream": True}}),
                manner=Manner(leaving=Leaving.AFTER_EVENTS, events=1),
                wave=1,
            ),
            Ask(
                name="beyond",
                body=Derived(rest_of_context, ("contract", "short"), {"extra": 1, "base": _SHORT}),
                wave=1,
            ),
        ),
        expects=(
            expect(has_status, "at", allowed=(200,)),
            expect(is_told, "beyond", status=400, code="context_length_exceeded", param="max_tokens"),
            expect(tells_published_limit, "contract", "beyond", name="context_length"),
        ),
    ),
)

_HTTP = (
    _own(
        "body_bytes",
        "A body that says that it is too long is refused before it comes",
        "Whoever can send 33 MiB can fill the memory.",
        (
            Ask(
                name="beyond",
                raw=b"{",
                headers={"Content-Length": Derived(length_at, ("contract",), {"name": "body_bytes", "extra": 1})},
                wave=1,
            ),
        ),
        {"status": 413, "code": "body_too_large"},
    ),
    _own(
        "uri_bytes",
        "A path that is too long is told as such",
        "Paths stand in every log line.",
        (
            Ask(
                name="beyond",
                method="GET",
                path=Derived(path_at, ("contract",), {"name": "uri_bytes", "extra": 1}),
                wave=1,
            ),
        ),
        {"status": 414, "code": "uri_too_long"},
    ),
)

CASES: tuple[Case, ...] = (*(_case(row) for row in _LIMITS), *_HTTP, *_CONTEXT)
