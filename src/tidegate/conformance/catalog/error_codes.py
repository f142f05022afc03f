"""How what is wrong with a request is told, as our own contract says it: codes, fields, bounds, retries."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.errors import SEVERAL, without
from tidegate.conformance.checks.errors import forbids_retry, has_bounded_message, is_told
from tidegate.conformance.probing.capability import Capability

_ROWS: tuple[tuple[str, Ask, dict[str, Any]], ...] = (
    ("bad_json", Ask(raw=b"{"), {"status": 400, "code": "invalid_json"}),
    ("empty", Ask(raw=b""), {"status": 400, "code": "invalid_json"}),
    (
        "media_type",
        Ask(body=chat_body(), headers={"Content-Type": "text/plain"}),
        {"status": 415, "code": "unsupported_media_type"},
    ),
    (
        "no_messages",
        Ask(body=without(chat_body(), "messages")),
        {"status": 400, "code": "missing_field", "param": "messages"},
    ),
    ("no_model", Ask(body=without(chat_body(), "model")), {"status": 400, "code": "missing_field", "param": "model"}),
    (
        "no_prompt",
        Ask(path="/completions", body=without(completion_body(), "prompt")),
        {"status": 400, "code": "missing_field", "param": "prompt"},
    ),
    (
        "unknown_model",
        Ask(body=chat_body(model="no-such-model")),
        {"status": 404, "code": "model_not_found", "param": "model"},
    ),
    (
        "deep_field",
        Ask(body=chat_body(messages=[{"role": "user", "content": [{"type": "text", "text": 5}]}])),
        {"status": 400, "code": "invalid_value", "param": "messages[0].content[0].text"},
    ),
)

CASES = (
    Case(
        id="errors.codes",
        title="Each kind of error has its status, type and code, and names the field",
        why="Clients branch on codes and show the field.",
        clauses=("tidegate:errors.codes",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(Capability.CONTRACT,),
        asks=tuple(
            Ask(name=name, path=ask.path, body=ask.body, raw=ask.raw, headers=ask.headers) for name, ask, _ in _ROWS
        ),
        expects=tuple(expect(is_told, name, **told) for name, _, told in _ROWS),
    ),
    Case(
        id="errors.bounded_message",
        title="A message is short, however long what it complains of",
        why="A message that repeats the request doubles traffic, and puts secrets into logs.",
        clauses=("tidegate:errors.message",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CONTRACT,),
        asks=(
            Ask(name="model", body=chat_body(model="q" * 20_000)),
            Ask(name="role", body=chat_body(messages=[{"role": "q" * 20_000, "content": "x"}])),
            Ask(name="number", body=chat_body(temperature="q" * 20_000)),
            Ask(name="kind", body=chat_body(response_format={"type": "q" * 20_000})),
            Ask(name="path", method="GET", path="/models/" + "q" * 4_000),
        ),
        expects=tuple(
            expect(has_bounded_message, name, letter="q") for name in ("model", "role", "number", "kind", "path")
        ),
    ),
    Case(
        id="errors.says_no_retry",
        title="Errors that no repetition cures say so",
        why="A client that is not told repeats some of them, and waits before it reports the fault.",
        clauses=("tidegate:errors.retry",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.CONTRACT,),
        asks=SEVERAL,
        expects=tuple(expect(forbids_retry, ask.name, must_say=True) for ask in SEVERAL),
    ),
)
