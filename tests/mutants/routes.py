"""What breaks paths and methods."""

import re
from collections.abc import Callable

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsHead, EditsValue, Heard, Mutant, Said

ODD = Said(500, b'{"error": {"message": "internal error", "type": "server_error", "param": null, "code": null}}')
LIST = b'{"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}'


def answers_where(says: str, pattern: str, said: Said = ODD, method: str = "") -> Mutant:
    """Returns a server that answers so where the target matches."""

    def answer(heard: Heard) -> Said | None:
        return said if re.search(pattern, heard.target) and method in ("", heard.method) else None

    return Answers(says, answer)


def without_header(says: str, name: str, holds: Callable[[int], bool] = lambda status: True) -> Mutant:
    """Returns a server that leaves a header out of answers with such statuses."""

    def edit(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        return status, {k: v for k, v in headers.items() if k.lower() != name or not holds(status)}

    return EditsHead(says, edit)


def with_status(says: str, old: int, new: int) -> Mutant:
    """Returns a server that gives one status for another."""
    return EditsHead(says, lambda heard, status, headers: (new if status == old else status, headers))


class _AnswersAnyMethod(Mutant):
    says = "takes a method that it does not know for GET"

    def hear(self, heard: Heard) -> Heard:
        return Heard("GET", heard.target, heard.headers, heard.body) if heard.method == "BREW" else heard


class _SendsBodyToHead(Mutant):
    says = "sends a body after HEAD"

    def hear(self, heard: Heard) -> Heard | Said:
        return Said(200, LIST) if heard.method == "HEAD" else heard


MUTANTS: Mutants = {
    "routes.unknown": (
        answers_where("serves its start page for every path", "no-such", Said(200, b"<html></html>")),
        with_status("fails on a path that it does not know", 404, 500),
    ),
    "routes.wrong_method": (
        without_header("names no methods on a 405", "allow"),
        with_status("fails on a wrong method", 405, 500),
        answers_where("takes any method", "/models$", Said(200, LIST), "POST"),
    ),
    "routes.head": (_SendsBodyToHead(), answers_where("fails on HEAD", "/models$", ODD, "HEAD")),
    "routes.query": (answers_where("takes a query for part of the path", r"\?api-version", Said(404, b"{}")),),
    "routes.trailing_slash": (answers_where("fails on a slash at the end", "/models/$"),),
    "routes.double_slash": (answers_where("fails on an empty part of a path", "//"),),
    "routes.options": (answers_where("fails on OPTIONS", "", ODD, "OPTIONS"),),
    "routes.unknown_method": (
        _AnswersAnyMethod(),
        answers_where("fails on a method it does not know", "", ODD, "BREW"),
    ),
    "routes.long_path": (answers_where("fails on a long path", "a{5000}"),),
    "routes.encoded_dots": (answers_where("follows encoded dots", r"\.\.%2f", Said(200, b"root:x:0:0:")),),
    "routes.bad_escape": (answers_where("fails on encodings that are none", "%zz"),),
    "routes.codes": (
        without_header("names no methods on a 405", "allow"),
        EditsValue("says detail, as a framework does", lambda value: {"detail": "Not Found"}, 404),
    ),
    "routes.health": (
        answers_where("has no /healthz", "/healthz", Said(404, b"{}")),
        answers_where("is never ready", "/health$", Said(503, b"{}")),
    ),
    "routes.no_admin": (
        answers_where("shows metrics to everyone", "/metrics", Said(200, b"# HELP up up\n")),
        answers_where("lets everyone flush", "/cache/flush", Said(200, b"{}")),
    ),
    "routes.contract": (answers_where("does not describe itself", "/contract", Said(404, b"{}")),),
}
