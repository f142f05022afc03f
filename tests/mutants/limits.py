"""What breaks limits."""

from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsErrors, EditsRequest, Heard, Mutant, Said
from mutants.routes import with_status
from tidegate.conformance.limit_bodies import FIELDS

VALUES = {
    "json_depth": 128,
    "messages": 4096,
    "prompts": 256,
    "choices": 128,
    "stop_strings": 4,
    "logit_bias_entries": 1024,
    "tools": 128,
    "tool_bytes": 256 * 1024,
    "schema_bytes": 256 * 1024,
    "schema_depth": 64,
}
"""The limits of a right server that nobody has set."""


class _Moved(Mutant):
    """Has another limit than it publishes: takes for `taken` what is `sent`."""

    def __init__(self, says: str, name: str, sent: int, taken: int) -> None:
        self.says = says
        self._sent = FIELDS[name](VALUES[name] + sent)
        self._taken = FIELDS[name](VALUES[name] + taken)

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        is_meant = isinstance(value, dict) and all(value.get(name) == part for name, part in self._sent.items())
        return heard.with_json(value | self._taken) if is_meant else heard


def _edit_limit(says: str, edit: Any) -> Mutant:
    def change(value: Any) -> Any:
        limit = value["error"].get("limit")
        return value if limit is None else {"error": value["error"] | {"limit": edit(limit)}}

    return EditsErrors(says, change)


def _without_limit() -> Mutant:
    return EditsErrors(
        "tells no limit", lambda value: {"error": {k: v for k, v in value["error"].items() if k != "limit"}}
    )


def _of(name: str) -> tuple[Mutant, ...]:
    return (
        _Moved("refuses what it publishes as its limit", name, 0, 1),
        _Moved("takes one more than it publishes", name, 1, 0),
    )


def _cut(value: Any) -> Any:
    texts = [message | {"content": message["content"][:1000]} for message in value.get("messages", [])]
    return value | {"messages": texts} if texts else value


def _clamp(value: Any) -> Any:
    return value | {"max_tokens": min(value["max_tokens"], 16)}


class _ReservesOne(Mutant):
    says = "keeps a token of the context to itself"

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        if isinstance(value, dict) and value.get("stream") and value["max_tokens"] > 1000:
            return heard.with_json(value | {"max_tokens": value["max_tokens"] + 1})
        return heard


class _FallsOver(Mutant):
    says = "does not serve after a prompt that was too long"
    _has_fallen = False

    def hear(self, heard: Heard) -> Heard | Said:
        self._has_fallen |= len(heard.body) > 100_000
        return Said(500) if self._has_fallen and heard.method == "POST" and len(heard.body) < 1000 else heard


MUTANTS: Mutants = {
    **{f"limits.{name}": _of(name) for name in VALUES},
    "limits.messages": (
        *_of("messages"),
        _without_limit(),
        _edit_limit("tells the limit for the actual value", lambda limit: limit | {"actual": limit["value"]}),
        _edit_limit("tells another limit", lambda limit: limit | {"value": 10}),
        _edit_limit("has another name for it", lambda limit: limit | {"name": "max_messages"}),
        _edit_limit("does not say whose limit it is", lambda limit: limit | {"scope": None}),
    ),
    "limits.body_bytes": (with_status("says only that the request is bad", 413, 400), _without_limit()),
    "limits.uri_bytes": (with_status("says that there is nothing", 414, 404), _without_limit()),
    "limits.long_prompt": (EditsRequest("cuts a prompt in silence", _cut), _FallsOver()),
    "limits.long_prompt_streamed": (EditsRequest("cuts a prompt in silence", _cut), _FallsOver()),
    "limits.context_length": (
        _ReservesOne(),
        EditsRequest("makes max_tokens fit in silence", _clamp),
        _without_limit(),
    ),
}
