"""The named assertions of the `stream` cases (`data/cases`). Each takes a `Told` and fails with its own name."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.event_stream import Stream
from harness.raw_http import Answer

LINE_SEPARATORS = ("\u2028", "\u2029", "\u0085", "\v", "\f")
NORMAL_ENDS = {"stop", "length", "tool_calls"}


@dataclass(slots=True)
class Told:
    """One case's outcome: the streamed answer, the same request's whole answer, and how many choices were asked for."""

    answer: Answer
    stream: Stream
    whole: dict[str, Any]
    num_choices: int
    is_chat: bool

    def values(self, member: str) -> set[Any]:
        return {chunk.get(member) for chunk in self.stream.chunks}

    def entries(self) -> list[dict[str, Any]]:
        logprobs = [choice.get("logprobs") for choice in self.stream.choices()]
        return [entry for part in logprobs if part for entry in part["content"]]


def role_once_first(told: Told) -> None:
    for index in range(told.num_choices):
        roles = [choice["delta"].get("role") for choice in told.stream.choices(index)]
        assert roles[0] == "assistant"
        assert roles[1:] == [None] * (len(roles) - 1)


def one_finish_per_index(told: Told) -> None:
    for index in range(told.num_choices):
        reasons = [choice["finish_reason"] for choice in told.stream.choices(index)]
        assert reasons[-1] is not None
        assert reasons[:-1] == [None] * (len(reasons) - 1)


def done_last_once(told: Told) -> None:
    assert (told.stream.num_done, told.stream.is_done_last) == (1, True)


def no_empty_event(told: Told) -> None:
    assert b"data: \n" not in told.answer.body
    assert told.stream.findings == []


def no_informationless_chunk(told: Told) -> None:
    for chunk in told.stream.chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            has_text = bool(delta.get("content")) or "role" in delta
            assert has_text or choice["finish_reason"] or choice.get("logprobs") or delta.get("tool_calls"), chunk


def no_normal_finish(told: Told) -> None:
    reasons = {reason for index in range(told.num_choices) for reason in told.stream.finish_reasons(index)}
    assert not reasons & NORMAL_ENDS
    assert told.stream.num_done == 0


def error_event_has_envelope(told: Told) -> None:
    error = told.stream.errors[0]
    assert set(error) >= {"message", "type", "param", "code"}
    assert isinstance(error["code"], str)


def no_finish_after_error(told: Told) -> None:
    assert "error" in told.stream.chunks[-1]
    assert told.stream.num_done == 0


def http_status_5xx_json(told: Told) -> None:
    assert 500 <= told.answer.status < 600
    assert told.answer.headers["content-type"].startswith("application/json")
    assert set(told.answer.json()["error"]) >= {"message", "type", "param", "code"}


def keepalive_only_comments(told: Told) -> None:
    lines = told.answer.body.decode().split("\n")
    assert ": ping" in lines
    assert all(line == "" or line.startswith(("data: ", ":")) for line in lines)
    assert b": ping\n\n" not in told.answer.body


def no_event_or_id_field(told: Told) -> None:
    assert not re.search(rb"^(event|id|retry):", told.answer.body, re.MULTILINE)


def usage_chunk_last_choices_empty(told: Told) -> None:
    last, earlier = told.stream.chunks[-1], told.stream.chunks[:-1]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in earlier)


def no_usage_values(told: Told) -> None:
    assert all(chunk.get("usage") is None for chunk in told.stream.chunks)


def usage_equals_nonstream(told: Told) -> None:
    assert told.stream.usage == told.whole["usage"]


def every_event_valid_json(told: Told) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for line in told.answer.body.decode().split("\n"):
        if line.startswith("data: ") and line != "data: [DONE]":
            json.loads(line.removeprefix("data: "), parse_constant=refuse)


def logprob_finite(told: Told) -> None:
    for entry in told.entries():
        for value in (entry, *entry["top_logprobs"]):
            assert math.isfinite(value["logprob"])
    assert told.entries()[0]["logprob"] == -9999.0


def top_aligned(told: Told) -> None:
    for entry in told.entries():
        same = [top for top in entry["top_logprobs"] if top["token"] == entry["token"]]
        assert [top["logprob"] for top in same] == [entry["logprob"]]


def logprob_bytes_concat_equals_content(told: Told) -> None:
    raw = b"".join(bytes(entry["bytes"]) for entry in told.entries())
    assert raw.decode() == told.stream.content()


def completions_logprob_shape(told: Told) -> None:
    parts = [choice["logprobs"] for choice in told.stream.choices() if choice["text"]]
    assert parts
    for part in parts:
        lengths = {len(part[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
        assert len(lengths) == 1


def stream_equals_nonstream(told: Told) -> None:
    for index in range(told.num_choices):
        choice = told.whole["choices"][index]
        text = choice["message"]["content"] if told.is_chat else choice["text"]
        streamed = told.stream.content(index) if told.is_chat else told.stream.text(index)
        assert streamed == (text or "")
        assert told.stream.finish_reasons(index) == [choice["finish_reason"]]


def no_raw_line_separators(told: Told) -> None:
    for line in told.answer.body.decode().split("\n"):
        assert not any(separator in line for separator in LINE_SEPARATORS)


def content_is_json_object(told: Told) -> None:
    assert isinstance(json.loads(told.stream.content()), dict)


ASSERTIONS: dict[str, Callable[[Told], None]] = {
    function.__name__: function
    for function in (
        role_once_first,
        one_finish_per_index,
        done_last_once,
        no_empty_event,
        no_informationless_chunk,
        no_normal_finish,
        error_event_has_envelope,
        no_finish_after_error,
        http_status_5xx_json,
        keepalive_only_comments,
        no_event_or_id_field,
        usage_chunk_last_choices_empty,
        no_usage_values,
        usage_equals_nonstream,
        every_event_valid_json,
        logprob_finite,
        top_aligned,
        logprob_bytes_concat_equals_content,
        completions_logprob_shape,
        stream_equals_nonstream,
        no_raw_line_separators,
        content_is_json_object,
    )
}


def _one(member: str) -> Callable[[Told], None]:
    def check(told: Told) -> None:
        assert len(told.values(member)) == 1

    return check


def _check_nonempty_id(told: Told) -> None:
    assert all(told.values("id"))


def _check_object(told: Told) -> None:
    assert told.values("object") == {"chat.completion.chunk"}


def _check_index(told: Told) -> None:
    assert {choice["index"] for chunk in told.stream.chunks for choice in chunk["choices"]} == {0}


def _check_error_once(told: Told) -> None:
    assert len(told.stream.errors) == 1


def _check_top_empty(told: Told) -> None:
    assert [entry["top_logprobs"] for entry in told.entries()] == [[]] * len(told.entries())
    assert told.entries()


def _check_choices(told: Told) -> None:
    assert all(chunk["choices"] for chunk in told.stream.chunks)


def _check_logprob_order(told: Told) -> None:
    whole = told.whole["choices"][0]["logprobs"]["content"]
    assert told.entries() == whole


ASSERTIONS |= {
    "one_id": _one("id"),
    "one_created": _one("created"),
    "one_model": _one("model"),
    "id_nonempty": _check_nonempty_id,
    "object_is_chunk": _check_object,
    "index_always_0": _check_index,
    "finish_null_before": one_finish_per_index,
    "error_event_once": _check_error_once,
    "top_logprobs_is_empty_list": _check_top_empty,
    "no_empty_choices_chunk": _check_choices,
    "logprob_order": _check_logprob_order,
}
