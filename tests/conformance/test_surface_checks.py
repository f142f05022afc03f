"""Checks of errors, headers and refusals, on answers that no mutant of ours gives."""

import json

import pytest

from tidegate.conformance.checks.bounds import is_within, passes_limit, tells_limit
from tidegate.conformance.checks.errors import (
    forbids_retry,
    has_error_object,
    has_text_code,
    is_json_error,
    is_refused,
    shows_no_internals,
)
from tidegate.conformance.checks.http_headers import has_own_request_id, have_distinct_request_ids
from tidegate.conformance.checks.models import is_found_alike, is_model_list, path_of_first
from tidegate.conformance.checks.secrecy import is_locked
from tidegate.conformance.checks.sturdiness import is_answered, is_answered_or_closed, is_turned_away
from tidegate.conformance.limit_bodies import FIELDS, over_long_prompt
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.body_coding import make_chunks
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece

ERROR = {"message": "no", "type": "invalid_request_error", "param": None, "code": None}


def said(
    status: int, body: object = None, *, method: str = "POST", ending: Ending = Ending.WHOLE, **headers: str
) -> Exchange:
    """Returns an exchange with this answer; `_` stands for the hyphen of a header's name."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    head = f"HTTP/1.1 {status} x\r\n{lines}content-length: {len(data)}\r\n\r\n".encode()
    return Exchange("it", 0, method, "http://x/v1", b"", "mmarker", (Piece(0.0, head + data),), ending)


def silent(ending: Ending) -> Exchange:
    """Returns an exchange to which nothing was said."""
    return Exchange("it", 0, "POST", "http://x/v1", b"", "mmarker", (), ending)


def told(message: str) -> Exchange:
    return said(400, {"error": ERROR | {"message": message}})


@pytest.mark.parametrize(
    "message",
    [
        "No route has this path: /v1/models/a.",
        "The model 'org/name-v1.2' does not exist.",
        "temperature: must be at most 2, not 0x7f",
        "messages[0].content: see https://example.org/usr",
        "It failed at line 3 of the grammar.",
    ],
    ids=["path of a route", "name with a slash", "number", "address", "line"],
)
def test_ordinary_messages_show_no_internals(message: str) -> None:
    assert not list(shows_no_internals(told(message)))


@pytest.mark.parametrize(
    "message",
    [
        'File "/srv/app.py", line 3, in run',
        "error in serving_chat.py:171",
        "cannot open /home/me/models/x.gguf",
        "<built-in method of Thing object at 0x7f00aa11bb22>",
        "panicked at src/main.rs:12",
    ],
    ids=["python frame", "source line", "home", "address", "rust"],
)
def test_internals_are_seen(message: str) -> None:
    assert list(shows_no_internals(told(message)))


@pytest.mark.parametrize(
    ("body", "num_faults"),
    [
        ({"error": ERROR}, 0),
        ({"error": ERROR | {"code": 400}}, 0),
        ({"error": ERROR | {"param": 5}}, 1),
        ({"error": ERROR | {"message": ""}}, 1),
        ({"error": {"message": "no"}}, 1),
        ({"error": "no"}, 1),
        ({"detail": "no"}, 1),
        (b"<html>", 1),
        (None, 1),
    ],
    ids=["whole", "number for a code", "param", "no words", "message only", "text", "framework", "page", "empty"],
)
def test_the_error_object_is_told_member_by_member(body: object, num_faults: int) -> None:
    assert len(list(has_error_object(said(400, body)))) == num_faults


def test_a_success_has_no_error_object_to_judge() -> None:
    answer = said(200, {"choices": []})
    assert not list(has_error_object(answer))
    assert not list(is_json_error(answer))
    assert list(is_refused(answer, allowed=(400,)))


def test_a_code_is_a_text_or_null() -> None:
    assert not list(has_text_code(said(400, {"error": ERROR})))
    assert not list(has_text_code(said(400, {"error": ERROR | {"code": "x"}})))
    assert list(has_text_code(said(400, {"error": ERROR | {"code": 400}})))


def test_retries_are_judged_by_what_headers_say() -> None:
    assert not list(forbids_retry(said(400), must_say=False))
    assert list(forbids_retry(said(400), must_say=True))
    assert not list(forbids_retry(said(400, x_should_retry="false"), must_say=True))
    assert list(forbids_retry(said(400, x_should_retry="true"), must_say=False))
    assert list(forbids_retry(said(400, retry_after="1"), must_say=False))


@pytest.mark.parametrize(
    ("exchange", "is_answer", "is_answer_or_closing", "is_rejection"),
    [
        (said(200, {}), True, True, False),
        (said(400, {}), True, True, True),
        (said(500, {}), False, False, False),
        (said(501, {}), False, True, True),
        (silent(Ending.CUT), False, True, True),
        (silent(Ending.RESET), False, True, True),
        (silent(Ending.TIMED_OUT), False, False, False),
        (silent(Ending.NO_CONNECTION), False, False, False),
        (said(200, {}, ending=Ending.TIMED_OUT), False, False, False),
    ],
    ids=["200", "400", "500", "501", "closed", "reset", "silence", "gone", "half an answer"],
)
def test_what_counts_as_staying_in_order(
    exchange: Exchange, is_answer: bool, is_answer_or_closing: bool, is_rejection: bool
) -> None:
    assert (not list(is_answered(exchange))) == is_answer
    assert (not list(is_answered_or_closed(exchange))) == is_answer_or_closing
    assert (not list(is_turned_away(exchange))) == is_rejection


@pytest.mark.parametrize(
    ("exchange", "is_right"),
    [
        (said(401, {"error": ERROR}), True),
        (said(404, {"detail": "no"}), True),
        (said(307, location="/v1/models"), True),
        (said(204, method="OPTIONS"), True),
        (said(200, b"OK", method="OPTIONS"), True),
        (said(200, {"data": [1]}, method="OPTIONS"), False),
        (said(200, method="HEAD"), False),
        (said(200, {}), False),
        (said(401, {"data": [{"id": "m"}]}), False),
        (said(500, {"error": ERROR}), False),
        (silent(Ending.CUT), False),
    ],
    ids=["401", "404", "redirected", "options", "preflight", "list", "head", "empty", "leak", "500", "closed"],
)
def test_what_counts_as_locked(exchange: Exchange, is_right: bool) -> None:
    assert (not list(is_locked(exchange))) == is_right


def test_request_ids_are_the_servers_own() -> None:
    assert not list(has_own_request_id(said(200, x_request_id="req_1"), hostile="{marker}<"))
    assert list(has_own_request_id(said(200, x_request_id="a-mmarker-b"), hostile="{marker}<"))
    assert list(has_own_request_id(said(200), hostile="{marker}<"))
    with pytest.raises(CannotTell):
        list(have_distinct_request_ids(said(200), said(200)))


def test_a_list_of_models_is_judged_model_by_model() -> None:
    right = {"id": "a/b", "object": "model", "created": 1, "owned_by": "x"}
    assert not list(is_model_list(said(200, {"object": "list", "data": [right]})))
    assert len(list(is_model_list(said(200, {"object": "list", "data": [right, right]})))) == 1
    assert len(list(is_model_list(said(200, {"object": "list", "data": [right | {"created": True}]})))) == 1
    assert len(list(is_model_list(said(200, {"object": "list", "data": []})))) == 1
    assert path_of_first(said(200, {"data": [right]})) == "/models/a%2Fb"
    assert path_of_first(said(200, {"data": [right]}), encodes="a") == "/models/%61%2Fb"
    with pytest.raises(CannotTell):
        path_of_first(said(200, {"data": []}))
    with pytest.raises(CannotTell):
        list(is_found_alike(said(404), said(404)))


def test_limits_are_told_with_both_numbers() -> None:
    def refused(**limit: object) -> Exchange:
        return said(400, {"error": ERROR | {"limit": limit}})

    right = {"name": "tools", "value": 5, "actual": 6, "scope": "request"}
    assert not list(tells_limit(refused(**right), name="tools", value=5, actual=6))
    assert len(list(tells_limit(refused(**right | {"actual": 5}), name="tools"))) == 1
    assert len(list(tells_limit(refused(**right | {"value": True}), name="tools"))) == 1
    assert not list(passes_limit(refused(**right), name="messages"))
    assert list(passes_limit(refused(**right), name="tools"))
    assert list(passes_limit(said(400, {"error": ERROR}), name="tools"))


def test_an_answer_without_usage_tells_nothing_of_its_length() -> None:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "length"}
    with pytest.raises(CannotTell):
        list(is_within(said(200, {"choices": [choice]}), num_tokens=2))
    counted = {"choices": [choice], "usage": {"completion_tokens": 2}}
    assert not list(is_within(said(200, counted), num_tokens=2))
    assert list(is_within(said(200, counted), num_tokens=1))


@pytest.mark.parametrize("name", ["tool_bytes", "schema_bytes"])
def test_bodies_at_a_limit_have_that_many_bytes(name: str) -> None:
    made = FIELDS[name](1000)
    inner = made["tools"] if name == "tool_bytes" else made["response_format"]["json_schema"]["schema"]
    assert len(json.dumps(inner, separators=(",", ":"))) == 1000


def test_a_context_is_filled_only_where_its_length_is_told() -> None:
    body = over_long_prompt(said(200, {"data": [{"meta": {"n_ctx_train": 50}}]}), base={"model": "m"})
    assert len(body["messages"][0]["content"].split()) == 150
    for model in ({"id": "m"}, {"max_model_len": 10_000_000}):
        with pytest.raises(CannotTell):
            over_long_prompt(said(200, {"data": [model]}), base={})


def test_chunks_hold_the_whole_body() -> None:
    assert make_chunks(body={}, size=1, extension=b";a=b", trailer=b"X: 1\r\n") == (
        b"1;a=b\r\n{\r\n1;a=b\r\n}\r\n0\r\nX: 1\r\n\r\n"
    )
