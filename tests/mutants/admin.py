"""What breaks the separation of the admin listener."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harness.judged_case import ADMIN_TOKEN, Mutants
from harness.mutant import Answers, EditsChunks, EditsErrors, EditsHead, EditsValue, Heard, Mutant, Said, on_base


def before_admin(mutant: Mutant) -> Mutant:
    """Returns the mutant in front of the admin listener."""
    mutant.is_admin = True
    return mutant


def _serves(says: str, is_served: Callable[[Heard], bool], body: bytes = b'{"status":"draining"}') -> Answers:
    return Answers(says, lambda heard: Said(200, body) if is_served(heard) else None)


def _status(says: str, path: str, status: int) -> Mutant:
    def answer(heard: Heard) -> Said | None:
        return Said(status, b"{}") if heard.target == path else None

    return before_admin(Answers(says, answer))


def _without_running(says: str) -> Mutant:
    return before_admin(_Page(says))


@dataclass
class _Page(Mutant):
    """The page of metrics does not say what runs."""

    says: str

    def whole(self, heard: Heard, status: int, body: bytes) -> bytes:
        return b"\n".join(line for line in body.split(b"\n") if b"_requests" not in line)


def _lists(entries: list[Any]) -> Mutant:
    return before_admin(EditsValue(f"lists {len(entries)} requests whatever runs", lambda value: {"data": entries}))


def _open(path: str) -> Mutant:
    def answer(heard: Heard) -> Said | None:
        is_unknown = heard.target == path and ADMIN_TOKEN not in (heard.header("Authorization") or "")
        return Said(200, b'{"object":"list","data":[]}') if is_unknown else None

    return on_base("keyed", before_admin(Answers("asks for no credential", answer)))


def _without_allow(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    return status, {name: value for name, value in headers.items() if name.lower() != "allow"}


def _takes_all(heard: Heard) -> Said | None:
    return Said(200, b'{"status":"draining"}') if heard.method == "POST" else None


def _aborts_in_words(heard: Heard) -> Said | None:
    return Said(200, b'{"status":"aborted"}') if heard.target.endswith("/abort") else None


def _ends_as_whole(chunk: Any, position: int) -> Iterable[Any]:
    yield {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]} if "error" in chunk else chunk


def _acts_by_get(heard: Heard) -> Said | None:
    return Said(200, b'{"status":"draining"}') if heard.target.endswith("/drain") else None


MUTANTS: Mutants = {
    "admin.public_acts": (
        _serves("drains for anybody", lambda heard: heard.target == "/admin/v1/drain" and heard.method == "POST"),
        _serves("aborts for anybody", lambda heard: heard.target.endswith("/abort")),
        EditsErrors("tells of routes in its own words", lambda value: {"detail": "Not Found"}),
    ),
    "admin.public_views": (_serves("shows metrics to anybody", lambda heard: heard.target == "/metrics", b"x 1"),),
    "admin.public_spellings": (
        _serves("takes two slashes for one", lambda heard: heard.target.startswith("//admin")),
        _serves("undoes escapes first", lambda heard: "%61" in heard.target),
    ),
    "admin.health": (_status("wants a credential for health", "/readyz", 401),),
    "admin.metrics": (
        _without_running("does not tell what runs"),
        before_admin(EditsHead("tells metrics as JSON", lambda heard, status, headers: (status, {"x-kind": "none"}))),
    ),
    "admin.credential_of_engine": (_open("/admin/v1/engine"),),
    "admin.credential_of_requests": (_open("/admin/v1/requests"),),
    "admin.live_requests": (_lists([]), _lists([{}, {}, {}])),
    "admin.abort": (
        before_admin(Answers("says that it aborted, and does not", _aborts_in_words)),
        EditsChunks("ends an aborted stream as a whole one", _ends_as_whole),
        before_admin(
            EditsHead(
                "has no such act",
                lambda heard, status, headers: (501, headers) if heard.method == "POST" else (status, headers),
            )
        ),
    ),
    "admin.methods": (
        before_admin(Answers("drains by GET", _acts_by_get)),
        before_admin(EditsHead("does not say which method", _without_allow)),
    ),
    "admin.unknown_member": (before_admin(Answers("passes over unknown members", _takes_all)),),
    "admin.unknown_request": (before_admin(Answers("says that it aborted what does not run", _takes_all)),),
}
