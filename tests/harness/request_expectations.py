"""The named expectations of the `request` cases (`data/cases`): each takes an `Outcome` and the value in the case."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from harness.raw_http import Answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case's answer, and how long it took."""

    answer: Answer
    duration_s: float

    @property
    def body(self) -> Any:
        return self.answer.json()

    @property
    def error(self) -> dict[str, Any]:
        error = self.body["error"]
        assert isinstance(error, dict)
        return error

    @property
    def is_refused(self) -> bool:
        return 400 <= self.answer.status < 500


def check_any_answer(outcome: Outcome) -> None:
    """Holds for every answer, whatever the case is about."""
    answer = outcome.answer
    assert answer.is_complete
    assert answer.status < 500
    assert answer.headers["x-request-id"]
    assert answer.headers["tidegate-contract"].startswith("1.")
    json.loads(answer.body, parse_constant=_refuse)
    if answer.status >= 400:
        check_error(outcome)
    else:
        assert "error" not in outcome.body


def check_error(outcome: Outcome) -> None:
    """The one shape of an error, and the advice not to try a faulty request again."""
    error = outcome.error
    assert set(error) - {"limit"} == {"message", "type", "param", "code"}
    assert isinstance(error["code"], str)
    assert len(error["message"].encode()) <= 2048
    assert not any(mark in error["message"] for mark in ("Traceback", "/tidegate", " object at 0x"))
    assert outcome.answer.headers["content-type"].startswith("application/json")
    assert outcome.answer.headers["x-should-retry"] == "false"


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def _status(outcome: Outcome, value: int) -> None:
    assert outcome.answer.status == value, outcome.answer.body


def _status_in(outcome: Outcome, value: list[int]) -> None:
    assert outcome.answer.status in value, outcome.answer.body


def _error(outcome: Outcome, value: dict[str, Any]) -> None:
    assert {key: outcome.error[key] for key in value} == value


def _error_param_contains(outcome: Outcome, value: str) -> None:
    assert value in outcome.error["param"]


def _error_param_if_4xx(outcome: Outcome, value: str) -> None:
    assert not outcome.is_refused or outcome.error["param"] == value


def _error_is_object(outcome: Outcome, _value: bool) -> None:
    check_error(outcome)


def _json_error_if_4xx(outcome: Outcome, _value: bool) -> None:
    if outcome.is_refused:
        check_error(outcome)


def _no_5xx(outcome: Outcome, _value: bool) -> None:
    assert outcome.answer.status < 500


def _content_type(outcome: Outcome, value: str) -> None:
    assert outcome.answer.headers["content-type"].startswith(value)


def _error_body_bytes_max(outcome: Outcome, value: int) -> None:
    assert len(outcome.answer.body) <= value


TOOLS_OR_SCHEMA = "tool_calls, or content that satisfies the schema"


def _if_200(outcome: Outcome, value: str) -> None:
    if value != TOOLS_OR_SCHEMA:
        assert outcome.is_refused, "CONTRACT.md refuses this, where other servers may ignore it"
        return
    message = outcome.answer.json()["choices"][0]["message"]
    content = json.loads(message["content"]) if message["content"] else None
    assert "tool_calls" in message or (content.keys() == {"a"} and isinstance(content["a"], int))


def _refused_unread(outcome: Outcome, _value: bool) -> None:
    assert (outcome.answer.status, outcome.error["code"]) == (422, "unsupported_parameter")


def _completion_tokens_max(outcome: Outcome, value: int) -> None:
    assert outcome.body["usage"]["completion_tokens"] <= value


def _prompt_tokens(outcome: Outcome, value: int) -> None:
    assert outcome.body["usage"]["prompt_tokens"] == value


def _text(outcome: Outcome, value: str) -> None:
    body = outcome.body
    assert (body["choices"][0]["text"] if "choices" in body else body["text"]) == value


def _finish_reason(outcome: Outcome, value: str) -> None:
    assert [choice["finish_reason"] for choice in outcome.body["choices"]] == [value]


def _choices(outcome: Outcome, value: int) -> None:
    assert len(outcome.body["choices"]) == value


def _choice_index(outcome: Outcome, value: list[int]) -> None:
    assert [choice["index"] for choice in outcome.body["choices"]] == value


def _choice_text_starts_with(outcome: Outcome, value: list[str]) -> None:
    texts = [choice["text"] for choice in outcome.body["choices"]]
    assert [text[: len(start)] for text, start in zip(texts, value, strict=True)] == value


def _logprobs(outcome: Outcome, value: dict[str, Any]) -> None:
    entries = outcome.body["choices"][0]["logprobs"]["content"]
    assert len(entries) == outcome.body["usage"][value["entries"]]
    assert all(entry["top_logprobs"] == value["top_logprobs"] for entry in entries)


def _completions_logprobs(outcome: Outcome, value: dict[str, Any]) -> None:
    logprobs, usage = outcome.body["choices"][0]["logprobs"], outcome.body["usage"]
    lists = [logprobs[name] for name in ("tokens", "token_logprobs", "text_offset")]
    if logprobs["top_logprobs"] is not None:
        lists.append(logprobs["top_logprobs"])
    lengths = {len(items) for items in lists}
    expected = value.get("len") or value["token_logprobs_len"]
    assert lengths == {usage[expected]}
    if value.get("first_is_null"):
        assert logprobs["token_logprobs"][0] is None
        assert None not in logprobs["token_logprobs"][1:]


def _duration(outcome: Outcome, value: float) -> None:
    assert outcome.duration_s < value


def _vectors(outcome: Outcome) -> list[list[float]]:
    return [row["embedding"] for row in outcome.body["data"]]


def _data_len(outcome: Outcome, value: int) -> None:
    assert len(outcome.body["data"]) == value


def _indices(outcome: Outcome, value: list[int]) -> None:
    assert [row["index"] for row in outcome.body["data"]] == value


def _equal_vectors(outcome: Outcome, value: list[list[int]]) -> None:
    vectors = _vectors(outcome)
    assert all(vectors[one] == pytest.approx(vectors[other]) for one, other in value)


def _different_vectors(outcome: Outcome, value: list[list[int]]) -> None:
    vectors = _vectors(outcome)
    assert all(vectors[one] != pytest.approx(vectors[other]) for one, other in value)


def _embedding_flat(outcome: Outcome, _value: bool) -> None:
    assert all(isinstance(number, float) for vector in _vectors(outcome) for number in vector)


def _finite(outcome: Outcome, _value: bool) -> None:
    assert all(math.isfinite(number) for vector in _vectors(outcome) for number in vector)


EXPECTATIONS: dict[str, Callable[[Outcome, Any], None]] = {
    "status": _status,
    "status_in": _status_in,
    "error": _error,
    "error_param_contains": _error_param_contains,
    "error_param_if_4xx": _error_param_if_4xx,
    "error_is_object": _error_is_object,
    "json_error_if_4xx": _json_error_if_4xx,
    "no_5xx": _no_5xx,
    "content_type": _content_type,
    "error_body_bytes_max": _error_body_bytes_max,
    "if_200": _if_200,
    "no_outgoing_connection": _refused_unread,
    "completion_tokens_max": _completion_tokens_max,
    "prompt_tokens": _prompt_tokens,
    "text": _text,
    "finish_reason": _finish_reason,
    "choices": _choices,
    "choice_index": _choice_index,
    "choice_text_starts_with": _choice_text_starts_with,
    "logprobs": _logprobs,
    "completions_logprobs": _completions_logprobs,
    "data_len": _data_len,
    "indices": _indices,
    "equal_vectors": _equal_vectors,
    "different_vectors": _different_vectors,
    "embedding_flat": _embedding_flat,
    "finite": _finite,
    "time_s_max": _duration,
    "within_s": _duration,
}
"""`alive_after`, `parallel` and what goes with it are the harness's own; `policy` is a remark."""
