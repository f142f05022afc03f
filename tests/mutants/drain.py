"""What breaks a drain."""

import json
from collections.abc import Iterable

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsChunks, EditsErrors, EditsHead, Heard, Said
from mutants.admin import before_admin


def _still(path: str) -> Answers:
    return Answers(
        f"says at {path} that it is ready while it drains",
        lambda heard: Said(200, b'{"status":"ready"}') if heard.target == path else None,
    )


def _without_wait(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    return status, {name: value for name, value in headers.items() if name.lower() != "retry-after"}


def _cut(chunk: dict, position: int) -> Iterable[dict]:
    if position > 3 and any(choice["finish_reason"] for choice in chunk["choices"]):
        yield {"error": {"message": "draining", "type": "overloaded_error", "param": None, "code": "server_draining"}}
    else:
        yield chunk


def _dead(heard: Heard) -> Said | None:
    return Said(503, json.dumps({"error": {"message": "x"}}).encode()) if heard.target == "/healthz" else None


MUTANTS: Mutants = {
    "drain.order": (
        before_admin(_still("/readyz")),
        _still("/health"),
        EditsHead("does not say when to come again", _without_wait),
        EditsErrors("refuses in its own words", lambda value: {"error": value["error"] | {"code": "no_capacity"}}),
        EditsChunks("cuts off what runs", _cut),
        before_admin(Answers("calls itself dead while it drains", _dead)),
    ),
}
