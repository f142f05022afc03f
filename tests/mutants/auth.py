"""What opens a server that needs keys."""

import re
from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsErrors, Heard, Mutant, Said, on_base
from mutants.errors import bare_text, framework_errors
from mutants.headers import edits
from mutants.routes import with_status, without_header

LIST = b'{"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}'


class _LetsIn(Mutant):
    """Serves without a key where it `holds`, as the right server would with one."""

    base = "keyed"

    def __init__(self, says: str, holds: Callable[[Heard], bool]) -> None:
        self.says = says
        self._holds = holds

    def hear(self, heard: Heard) -> Heard | Said:
        return Said(200, LIST) if self._holds(heard) else heard


def _keyed(mutant: Mutant) -> Mutant:
    return on_base("keyed", mutant)


def _has_key(heard: Heard) -> bool:
    return heard.header("authorization") is not None


def _at(pattern: str, method: str = "") -> Callable[[Heard], bool]:
    return lambda heard: (
        re.search(pattern, heard.target) is not None and method in ("", heard.method) and not _has_key(heard)
    )


def _given(pattern: str) -> Callable[[Heard], bool]:
    return lambda heard: re.search(pattern, heard.header("authorization") or "") is not None


class _EchoesKey(Mutant):
    base = "keyed"
    says = "repeats the key in its message"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        key = heard.header("authorization") or ""
        return value if status != 401 else {"error": value["error"] | {"message": f"Incorrect key: {key[-12:]}"}}


class _ChecksBodyFirst(Mutant):
    base = "keyed"
    says = "reads the body before the key"

    def hear(self, heard: Heard) -> Heard | Said:
        bad = (
            b'{"error": {"message": "no JSON", "type": "invalid_request_error", "param": null, "code": "invalid_json"}}'
        )
        return Said(400, bad) if heard.body and heard.json is None else heard


class _ChecksModelFirst(Mutant):
    base = "keyed"
    says = "looks up the model before the key"

    def hear(self, heard: Heard) -> Heard | Said:
        bad = b'{"error": {"message": "no", "type": "invalid_request_error", "param": null, "code": "model_not_found"}}'
        return Said(404, bad) if b"no-such-model" in heard.body else heard


class _ToldInStream(Mutant):
    base = "keyed"
    says = "begins the stream before it looks at the key"

    def hear(self, heard: Heard) -> Heard | Said:
        error = b'data: {"error": {"message": "no", "type": "x", "param": null, "code": null}}\n\n'
        return Said(200, error, [("Content-Type", "text/event-stream")]) if heard.is_stream else heard


def _needs_exact_scheme() -> Mutant:
    said = Said(401, b'{"error": {"message": "no", "type": "authentication_error", "param": null, "code": null}}')
    return Answers("reads the scheme by case", lambda heard: said if _given("^bearer ")(heard) else None)


MUTANTS: Mutants = {
    "auth.no_key": (
        _LetsIn("serves who sends no key", lambda heard: not _has_key(heard)),
        _keyed(with_status("says 403 where a key is missing", 401, 403)),
    ),
    "auth.wrong_key": (_LetsIn("takes any key", _given("sk-")),),
    "auth.error_object": (
        _keyed(EditsErrors("says the error as a bare text", lambda value: {"error": "Unauthorized"})),
        _keyed(framework_errors()),
        _keyed(bare_text()),
        _keyed(edits("says that it is text", lambda h, s, v: v | {"content-type": "text/plain"})),
    ),
    "auth.wrong_key_streamed": (_ToldInStream(),),
    "auth.malformed": tuple(
        _LetsIn(says, _given(pattern))
        for says, pattern in (
            ("takes the beginning of a key", r"tg_\w+x$"),
            ("takes any scheme", r"^Basic"),
            ("takes an empty key", r"^Bearer\s*$"),
            ("takes the last of several keys", r","),
        )
    ),
    "auth.no_scheme": (_LetsIn("takes the key without a scheme", _given(r"^tg_")),),
    "auth.scheme_case": (_keyed(_needs_exact_scheme()),),
    "auth.challenge": (_keyed(without_header("does not say what would do", "www-authenticate")),),
    "auth.routes": (
        _LetsIn("lists its models to everyone", _at("^/v1/models$")),
        _LetsIn("guards chat only", _at("^/v1/completions")),
        _LetsIn("lets streams through", lambda heard: heard.is_stream and not _has_key(heard)),
    ),
    "auth.spellings": tuple(
        _LetsIn(says, _at(pattern, method))
        for says, pattern, method in (
            ("guards paths by prefix, and reads // as /", "^//v1", ""),
            ("guards before it decodes", "%2f|%6d", ""),
            ("guards one case only", "/V1|Chat", ""),
            ("guards no HEAD", "", "HEAD"),
            ("guards before it resolves dots", r"\.", ""),
            ("guards no slash at the end", "/$", ""),
        )
    ),
    "auth.no_echo": (_EchoesKey(),),
    "auth.everywhere": (
        _LetsIn("leaves tokenize open", _at("/tokenize")),
        _keyed(
            Answers(
                "tells strangers which routes there are",
                lambda heard: Said(404, b"{}") if _at("/no-such-route")(heard) else None,
            )
        ),
        _LetsIn("answers OPTIONS to everyone", _at("", "OPTIONS")),
    ),
    "auth.health_is_open": (
        _keyed(Answers("guards its health", lambda heard: Said(401, b"{}") if "/health" in heard.target else None)),
    ),
    "auth.first": (_ChecksBodyFirst(), _ChecksModelFirst()),
}
