"""What breaks deadlines."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsErrors, EditsFrames, EditsHead, Headers, Heard, Mutant, Said, frame_of
from mutants.cancellation import NeverCountsBack
from mutants.idempotency import refuses_header

_HEADERS = ("x-deadline-ms", "x-first-token-deadline-ms")
_FIELDS = ("deadline_ms", "first_token_deadline_ms")


def _timeless(heard: Heard, *, headers: bool = True, fields: bool = True) -> Heard:
    if headers:
        kept = [(name, value) for name, value in heard.headers if name.lower() not in _HEADERS]
        heard = Heard(heard.method, heard.target, kept, heard.body, heard.notes)
    value = heard.json
    if fields and isinstance(value, dict):
        heard = heard.with_json({name: part for name, part in value.items() if name not in _FIELDS})
    return heard


@dataclass
class Forgets(Mutant):
    """`edit` takes deadlines out of a request."""

    says: str
    edit: Callable[[Heard], Heard]

    def hear(self, heard: Heard) -> Heard | Said:
        return self.edit(heard)


@dataclass
class RunsThenRefuses(Mutant):
    """The work is done before the deadline is looked at."""

    says: str = "refuses when the work is done"

    def hear(self, heard: Heard) -> Heard | Said:
        heard.notes["is_late"] = heard.header("x-deadline-ms") is not None
        return _timeless(heard)

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        error = {"message": "late", "type": "timeout_error", "param": None, "code": "deadline_unreachable"}
        return {"error": error} if heard.notes["is_late"] else value

    def head(self, heard: Heard, status: int, headers: Headers) -> tuple[int, Headers]:
        return (504, [*headers, ("X-Should-Retry", "false")]) if heard.notes["is_late"] else (status, headers)


@dataclass
class EndsQuietly(Mutant):
    """A stream whose time is over ends as if it were whole."""

    says: str = "ends a stream that is out of time with a finish reason"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        if "error" not in chunk:
            yield chunk
            return
        yield {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}


_VETO = json.dumps(
    {"error": {"message": "no", "type": "timeout_error", "param": None, "code": "deadline_unreachable"}}
).encode()


def _forgets() -> Forgets:
    return Forgets("takes no notice of deadlines", _timeless)


def _vetoes(heard: Heard) -> Said | None:
    value = heard.json
    has_field = isinstance(value, dict) and any(name in value for name in _FIELDS)
    return Said(504, _VETO) if has_field or any(heard.header(name) for name in _HEADERS) else None


def _retries(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    kept = {name: value for name, value in headers.items() if name.lower() != "x-should-retry"}
    return status, kept if status == 504 else headers


def _done_after_error(data: str, position: int) -> Iterable[bytes]:
    yield from frame_of(data)
    if "error" in json.loads(data):
        yield from frame_of("[DONE]")


def _with_status(status: int) -> EditsHead:
    return EditsHead(
        f"answers {status} for 504", lambda heard, said, headers: (status if said == 504 else said, headers)
    )


MUTANTS: Mutants = {
    "deadlines.generous_header": (Answers("takes every deadline for unreachable", _vetoes),),
    "deadlines.generous_fields": (Answers("takes every deadline for unreachable", _vetoes),),
    "deadlines.unknown_header": (refuses_header("X-Deadline-Ms"),),
    "deadlines.unreachable_header": (_forgets(), EditsHead("lets a client retry a veto", _retries)),
    "deadlines.unreachable_field": (
        _forgets(),
        EditsErrors("says timeout", lambda value: {"error": value["error"] | {"code": "timeout"}}),
    ),
    "deadlines.unreachable_stream": (_forgets(),),
    "deadlines.unreachable_first_token": (_forgets(),),
    "deadlines.unreachable_completion": (_forgets(),),
    "deadlines.unreachable_least_is_header": (
        Forgets(
            "takes the field where both are there",
            lambda heard: _timeless(heard, fields=False) if heard.json and "deadline_ms" in heard.json else heard,
        ),
    ),
    "deadlines.unreachable_least_is_field": (
        Forgets(
            "takes the header where both are there",
            lambda heard: _timeless(heard, headers=False) if heard.header("x-deadline-ms") else heard,
        ),
    ),
    "deadlines.unreachable_costs_nothing": (RunsThenRefuses(),),
    "deadlines.unreachable_in_the_queue": (
        _forgets(),
        EditsErrors(
            "says of what is to come that it has passed",
            lambda value: {"error": value["error"] | {"code": "deadline_exceeded"}},
        ),
    ),
    "deadlines.expires_in_the_stream": (
        EndsQuietly(),
        EditsFrames("sends [DONE] after the error", _done_after_error),
    ),
    "deadlines.expires_before_the_end": (_with_status(500),),
    "deadlines.expiry_frees": (NeverCountsBack('tidegate_kv_blocks{state="used"}'),),
    **{f"deadlines.bad_{name}": (_forgets(),) for name in ("zero", "negative", "word", "fraction", "beyond_64_bits")},
}
