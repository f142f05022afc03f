"""What breaks the telling of errors."""

import json
import re
from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsErrors, EditsHead, EditsRequest, Heard, Mutant, Said
from mutants.routes import with_status, without_header

STREAM = [("Content-Type", "text/event-stream")]
SUCCESS = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}


def _edit_error(says: str, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Mutant:
    return EditsErrors(says, lambda value: value | {"error": edit(value["error"])} if "error" in value else value)


def framework_errors() -> Mutant:
    return EditsErrors("says detail, as a framework does", lambda value: {"detail": "Unprocessable"})


def bare_text() -> Mutant:
    return EditsErrors("says the error as a bare text", lambda value: {"error": value["error"]["message"]})


def flat_errors() -> Mutant:
    return EditsErrors("does not wrap the error", lambda value: {"object": "error", **value["error"]})


def without_members() -> Mutant:
    return _edit_error("leaves param and code out", lambda error: {k: error[k] for k in ("message", "type")})


def as_html() -> Mutant:
    def edit(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        return status, headers | ({"content-type": "text/html"} if status >= 400 else {})

    return EditsHead("says that errors are HTML", edit)


def any_success(heard: Heard) -> Said:
    """Returns an answer as if nothing were wrong."""
    return Said(200, json.dumps(SUCCESS).encode())


def takes(says: str, holds: Callable[[Heard], bool]) -> Mutant:
    """Returns a server that answers as if nothing were wrong where it `holds`."""
    return Answers(says, lambda heard: any_success(heard) if holds(heard) else None)


def fails(says: str, holds: Callable[[Heard], bool]) -> Mutant:
    """Returns a server that fails where it `holds`."""
    body = b'{"error": {"message": "Internal Server Error", "type": "server_error", "param": null, "code": null}}'
    return Answers(says, lambda heard: Said(500, body) if holds(heard) else None)


def _serves_another_model(value: Any) -> Any:
    return value | {"model": "scripted"} if str(value.get("model")).startswith("no-such") else value


def _with_messages(value: Any) -> Any:
    return {"messages": [{"role": "user", "content": "x"}]} | value


class _FailsInStream(Mutant):
    says = "tells what is wrong with a stream's request in the stream"

    def hear(self, heard: Heard) -> Heard | Said:
        error = b'data: {"error": {"message": "no", "type": "x", "param": null, "code": null}}\n\n'
        value = heard.json
        if isinstance(value, dict) and heard.is_stream and (value["model"] != "scripted" or "-1" in str(value)):
            return Said(200, error, STREAM)
        if isinstance(value, dict) and heard.is_stream and value["messages"] == "hello":
            return Said(200, error, STREAM)
        return heard


class _SaysOkWithError(Mutant):
    says = "answers 200 with an error in it"

    def head(self, heard: Heard, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return (200 if status in (400, 415) else status), headers


def _leaks(text: str) -> Mutant:
    return _edit_error(f"shows {text[:30]}", lambda error: error | {"message": f"failed: {text}"})


def _says(name: str, value: str) -> Mutant:
    def edit(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        others = {k: v for k, v in headers.items() if k.lower() != name.lower()}
        return status, others | {name: value} if status >= 400 else headers

    return EditsHead(f"says {name}: {value} on every error", edit)


def _holds_odd_type(heard: Heard) -> bool:
    return re.search(rb"17, null|\"type\": 5|\"function\": \"x\"|\"name\": 3", heard.body) is not None


def _quotes_all(error: dict[str, Any]) -> dict[str, Any]:
    return error | {"message": error["message"] + "q" * 100}


MUTANTS: Mutants = {
    "errors.bad_json": (framework_errors(), fails("fails on what is no JSON", lambda heard: heard.json is None)),
    "errors.not_an_object": (
        fails("indexes into whatever it gets", lambda heard: isinstance(heard.json, list)),
        bare_text(),
    ),
    "errors.empty_body": (fails("fails on an empty body", lambda heard: not heard.body), flat_errors()),
    "errors.content_type": (
        _SaysOkWithError(),
        EditsErrors("says only that the type is wrong", lambda value: "unsupported"),
    ),
    "errors.no_messages": (
        EditsRequest("asks for no messages", lambda value: _with_messages(value)),
        framework_errors(),
    ),
    "errors.wrong_type": (
        takes("takes a text for messages", lambda heard: b'"messages": "hello"' in heard.body),
        bare_text(),
    ),
    "errors.wrong_value": (as_html(), flat_errors()),
    "errors.unknown_model": (
        EditsRequest("takes any name of a model for its own", _serves_another_model),
        bare_text(),
    ),
    "errors.unknown_model_streamed": (_FailsInStream(), framework_errors()),
    "errors.before_stream": (_FailsInStream(),),
    "errors.completions_bad_json": (fails("fails on what is no JSON", lambda heard: heard.json is None), bare_text()),
    "errors.completions_wrong_type": (
        fails("fails on a prompt that is an object", lambda heard: b'{"a"' in heard.body),
        framework_errors(),
    ),
    "errors.unknown_route": (framework_errors(), as_html()),
    "errors.wrong_method": (framework_errors(), as_html()),
    "errors.unknown_model_lookup": (framework_errors(), with_status("fails on an unknown name", 404, 500)),
    "errors.nullable_members": (without_members(),),
    "errors.text_code": (_edit_error("numbers its codes", lambda error: error | {"code": 400}),),
    "errors.no_internals": (
        _leaks('Traceback (most recent call last):\n  File "/app/server.py", line 3'),
        _leaks("<Body object at 0x7f59a6b372d0>"),
        _leaks("/usr/lib/python3/site-packages/server/app.py"),
        _leaks("<class 'dict'> has no attribute"),
    ),
    "errors.blame": (fails("fails on types that it does not expect", _holds_odd_type),),
    "errors.no_success": (_SaysOkWithError(), _FailsInStream()),
    "errors.no_retry": (_says("X-Should-Retry", "true"), _says("Retry-After", "1")),
    "errors.codes": (
        _edit_error("names no field", lambda error: error | {"param": None}),
        _edit_error("has one code for all", lambda error: error | {"code": "invalid_request"}),
        with_status("gives 422 for 400", 400, 422),
    ),
    "errors.bounded_message": (_edit_error("quotes all of the input", _quotes_all),),
    "errors.says_no_retry": (without_header("does not say whether to repeat", "x-should-retry"),),
}
