"""What breaks the headers of answers, and the reading of those of requests."""

from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsChunks, EditsHead, EditsRequest, EditsValue, Heard, Mutant, Said
from mutants.routes import without_header

Edit = Callable[[Heard, int, dict[str, str]], dict[str, str]]


def edits(says: str, edit: Edit) -> Mutant:
    """Returns a server with other headers."""
    return EditsHead(says, lambda heard, status, headers: (status, edit(heard, status, headers)))


def sets(name: str, value: str) -> Mutant:
    """Returns a server whose answers all carry the header with this value."""

    def edit(heard: Heard, status: int, headers: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in headers.items() if k.lower() != name} | {name: value}

    return edits(f"says {name}: {value}", edit)


def _refuses(says: str, status: int, holds: Callable[[Heard], bool]) -> Mutant:
    body = b'{"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": null}}'
    return Answers(says, lambda heard: Said(status, body) if holds(heard) else None)


def _echoes_all(heard: Heard, status: int, headers: dict[str, str]) -> dict[str, str]:
    sent = heard.header("x-request-id")
    return headers | {"x-request-id": sent} if sent is not None else headers


class _AnswersWhole(Mutant):
    says = "streams only to who accepts event streams"

    def hear(self, heard: Heard) -> Heard:
        value = heard.json
        if heard.header("accept") == "application/json" and isinstance(value, dict):
            return heard.with_json(value | {"stream": False})
        return heard


def _without_unknown(value: Any) -> Any:
    return {name: part for name, part in value.items() if name not in ("zzz_unknown", "tempreature")}


MUTANTS: Mutants = {
    "headers.whole_type": (sets("content-type", "text/plain"),),
    "headers.stream_type": (sets("content-type", "application/octet-stream"),),
    "headers.accept_json": (_AnswersWhole(),),
    "headers.media_type_parameters": (
        _refuses("compares the media type as a text", 415, lambda heard: ";" in (heard.header("content-type") or "")),
        _refuses("reads media types by case", 415, lambda heard: "JSON" in (heard.header("content-type") or "")),
    ),
    "headers.trace_context": (
        _refuses(
            "refuses a trace that is not well formed",
            400,
            lambda heard: (heard.header("traceparent") or "").startswith(("ff-", "00-0000", "m")),
        ),
        _refuses("refuses later versions", 400, lambda heard: (heard.header("traceparent") or "").startswith("cc-")),
        _refuses("takes no tracestate", 400, lambda heard: heard.header("tracestate") is not None),
    ),
    "headers.unknown": (_refuses("refuses cookies", 400, lambda heard: heard.header("cookie") is not None),),
    "headers.request_id": (
        without_header("names no request", "x-request-id"),
        without_header("names no request that failed", "x-request-id", lambda status: status >= 400),
    ),
    "headers.distinct_request_ids": (sets("x-request-id", "req_1"),),
    "headers.request_id_echo": (
        sets("x-request-id", "req_1"),
        edits("echoes in upper case", lambda h, s, v: v | {"x-request-id": v.get("x-request-id", "").upper()}),
    ),
    "headers.request_id_hostile": (edits("echoes whatever it is sent", _echoes_all),),
    "headers.contract": (
        without_header("names its contract on success only", "tidegate-contract", lambda status: status >= 400),
        sets("tidegate-contract", "2.0"),
    ),
    "headers.served_revision": (
        EditsValue("tells another fingerprint", lambda value: value | {"system_fingerprint": "fp_1"}),
        EditsChunks(
            "marks only the first chunk",
            lambda chunk, position: [chunk if position == 0 else chunk | {"system_fingerprint": None}],
        ),
        without_header("tells no revision", "tidegate-served-revision"),
    ),
    "headers.ignored_fields": (
        EditsRequest("drops unknown fields unseen", _without_unknown),
        sets("tidegate-ignored-fields", "tempreature, zzz_unknown, max_tokens"),
    ),
    "headers.stream": (
        sets("cache-control", "private"),
        without_header("lets proxies buffer", "x-accel-buffering"),
        sets("content-encoding", "gzip"),
        sets("content-type", "text/event-stream"),
    ),
}
