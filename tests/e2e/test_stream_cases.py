"""The `stream` cases from public fault reports, played by the scripted engine. Sources: tests/data/cases."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import Stream, read_stream
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread
from harness.stream_assertions import ASSERTIONS, Told
from harness.tool_assertions import TOOL_EXPECTATIONS, same_calls

CASES = Path(__file__).parent.parent / "data" / "cases" / "cases.jsonl"
HEARTBEAT_S = 0.2
MAX_DELAY_S = 1.0
ELSEWHERE = {
    "C161-1": "tests/e2e/test_disconnects.py",
    "C161-3": "tests/e2e/test_disconnects.py",
    "C162-1": "tests/e2e/test_overload.py",
    "C165-1": "tests/e2e/test_deadlines.py",
    "C166-1": "tests/e2e/test_deadlines.py",
    "C170-1": "tests/e2e/test_overload.py",
}
"""Cases that need a client, or a server, of their own."""


def _why_not_yet(case: dict[str, Any]) -> str | None:
    """Returns what the case needs that is not served yet; None when it concerns what exists."""
    given = case["input"]
    if given["endpoint"] == "/v1/responses":
        return "the Responses API"
    return None


def _cases() -> Iterator[dict[str, Any]]:
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] == "stream" and case["id"] not in ELSEWHERE:
            yield case


ALL_CASES = list(_cases())
SERVED = [case for case in ALL_CASES if _why_not_yet(case) is None]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", server__heartbeat_s=HEARTBEAT_S) as running:
        yield running


def test_every_case_is_either_played_or_waits_for_a_named_feature() -> None:
    waiting = {case["id"]: _why_not_yet(case) for case in ALL_CASES if _why_not_yet(case) is not None}
    assert len(SERVED) + len(waiting) == len(ALL_CASES) == 42
    assert waiting == {
        **dict.fromkeys(("C178-2", "C179-1", "C185-1"), "the Responses API"),
    }


@pytest.mark.parametrize("case", SERVED, ids=[case["id"] for case in SERVED])
def test_case(server: ServerThread, case: dict[str, Any]) -> None:  # SSE-3 SSE-9
    told = _play(server, case)
    expect = case["expect"]
    for name in expect.get("assert", []):
        ASSERTIONS[name](told)
    for name, value in expect.items():
        if name not in ("assert", "policy", "content_cmp"):
            _compare(name, value, told.stream)
    if told.is_chat and "choices" in told.whole:
        same_calls(told)


def _play(server: ServerThread, case: dict[str, Any]) -> Told:
    given = case["input"]
    script = dict(given["engine"])
    if given.get("parser"):
        script["parsers"] = {name: value for name, value in given["parser"].items() if name != "thinking"}
        script["thinking"] = given["parser"].get("thinking")
    script["delays_s"] = [min(delay, MAX_DELAY_S) for delay in script.get("delays_s", [])]
    body = {"model": server.model, **given["request"], "x_script": script}
    answer = request(server.port, "POST", given["endpoint"], body)
    whole_body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    whole = request(server.port, "POST", given["endpoint"], whole_body)
    is_stream = answer.headers["content-type"].startswith("text/event-stream")
    stream = read_stream(answer.body) if is_stream else Stream()
    is_chat = given["endpoint"].endswith("chat/completions")
    _check_framing(answer, stream)
    return Told(answer, stream, whole.json(), body.get("n", 1), is_chat)


def _check_framing(answer: Answer, stream: Stream) -> None:
    """Holds for every stream, whatever the case is about."""
    assert stream.findings == []
    if stream.chunks:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-length" not in answer.headers
        assert answer.is_complete == (not stream.errors), "a failed stream is cut off after its error event"


def _compare(name: str, value: Any, stream: Stream) -> None:
    assert name in EXPECTATIONS, f"the expectation {name} is not known"
    EXPECTATIONS[name](stream, value)


def _entries(stream: Stream, member: str) -> list[Any]:
    logprobs = [choice.get("logprobs") for choice in stream.choices()]
    return [entry[member] for part in logprobs if part for entry in part["content"]]


def _items(name: str) -> Callable[[Stream, Any], None]:
    def check(stream: Stream, value: Any) -> None:
        lists = [choice["logprobs"] for choice in stream.choices() if choice.get("logprobs")]
        assert [item for part in lists for item in part[name]] == value

    return check


def _check_content(stream: Stream, value: str) -> None:
    assert stream.content() == value


def _check_reasoning(stream: Stream, value: str | None) -> None:
    assert stream.reasoning() == (value or "")


def _check_text(stream: Stream, value: str) -> None:
    assert stream.text() == value


def _check_contents(stream: Stream, value: list[str]) -> None:
    assert [stream.content(index) for index in range(len(value))] == value


def _check_reason(stream: Stream, value: str) -> None:
    assert stream.finish_reasons() == [value]


def _check_reasons(stream: Stream, value: list[str]) -> None:
    assert [stream.finish_reasons(index) for index in range(len(value))] == [[reason] for reason in value]


def _check_usage(stream: Stream, value: dict[str, Any]) -> None:
    assert stream.usage is not None
    assert {key: stream.usage[key] for key in value} == value


def _check_values(stream: Stream, value: list[float]) -> None:
    assert _entries(stream, "logprob") == value


def _check_bytes(stream: Stream, value: list[list[int]]) -> None:
    assert _entries(stream, "bytes") == value


def _check_top(stream: Stream, value: list[list[str]]) -> None:
    assert [[top["token"] for top in entry] for entry in _entries(stream, "top_logprobs")] == value


def _check_json(stream: Stream, value: Any) -> None:
    assert json.loads(stream.content()) == value


def _check_reason_in(stream: Stream, value: list[str]) -> None:
    (reason,) = stream.finish_reasons()
    assert reason in value


EXPECTATIONS: dict[str, Callable[[Stream, Any], None]] = {
    **TOOL_EXPECTATIONS,
    "content": _check_content,
    "reasoning": _check_reasoning,
    "content_before_error": _check_content,
    "text": _check_text,
    "contents": _check_contents,
    "finish_reason": _check_reason,
    "finish_reasons": _check_reasons,
    "finish_reason_in": _check_reason_in,
    "json_content": _check_json,
    "usage": _check_usage,
    "logprob_values": _check_values,
    "logprob_bytes": _check_bytes,
    "top_tokens": _check_top,
    "tokens": _items("tokens"),
    "token_logprobs": _items("token_logprobs"),
    "text_offset": _items("text_offset"),
}
