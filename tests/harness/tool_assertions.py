"""The named assertions of the `stream` cases that concern tool calls, and the values that these cases expect."""

import json
from collections.abc import Callable
from typing import Any

from harness.event_stream import Stream
from harness.stream_assertions import ASSERTIONS, Told
from harness.streamed_calls import calls_of

MARKUP = ("<tool_call>", "</tool_call>", '"arguments"')


def tool_delta_shape(told: Told) -> None:
    for index in range(told.num_choices):
        assert calls_of(told.stream, index)


def finish_tool_calls(told: Told) -> None:
    assert told.stream.finish_reasons() == ["tool_calls"]
    assert told.whole["choices"][0]["finish_reason"] == "tool_calls"


def args_concat_is_one_json(told: Told) -> None:
    for call in calls_of(told.stream):
        json.loads(call.text)


def id_only_first(told: Told) -> None:
    ids = [delta.get("id") for delta in _deltas(told)]
    assert ids[0]
    assert ids[1:] == [None] * (len(ids) - 1)


def name_once_complete(told: Told) -> None:
    names = [delta["function"].get("name") for delta in _deltas(told)]
    assert [name for name in names if name] == ["tide_at"]


def no_tool_deltas(told: Told) -> None:
    assert _deltas(told) == []
    assert "tool_calls" not in told.whole["choices"][0]["message"]


def no_markup_in_content(told: Told) -> None:
    contents = (told.stream.content(), told.whole["choices"][0]["message"]["content"] or "")
    assert not [mark for mark in MARKUP for content in contents if mark in content]


def stream_ends_normally(told: Told) -> None:
    assert told.stream.errors == []
    assert told.stream.num_done == 1
    assert len(told.stream.finish_reasons()) == 1


def arguments_is_string(told: Told) -> None:
    for call in told.whole["choices"][0]["message"]["tool_calls"]:
        assert isinstance(call["function"]["arguments"], str)


def tool_calls_is_list(told: Told) -> None:
    assert isinstance(told.whole["choices"][0]["message"]["tool_calls"], list)


def same_calls(told: Told) -> None:
    """Holds for every case: both answers tell of the same calls, but for their ids, which are minted for each."""
    for index in range(told.num_choices):
        whole = told.whole["choices"][index]["message"].get("tool_calls", [])
        streamed = [call.as_whole() for call in calls_of(told.stream, index)]
        assert [{**call, "id": ""} for call in streamed] == [{**call, "id": ""} for call in whole]


def _deltas(told: Told) -> list[dict[str, Any]]:
    return [delta for choice in told.stream.choices() for delta in choice["delta"].get("tool_calls", [])]


def _content_is_json_object(told: Told) -> None:
    assert isinstance(json.loads(told.stream.content()), dict)


ASSERTIONS |= {
    function.__name__: function
    for function in (
        tool_delta_shape,
        finish_tool_calls,
        args_concat_is_one_json,
        id_only_first,
        name_once_complete,
        no_tool_deltas,
        no_markup_in_content,
        stream_ends_normally,
        arguments_is_string,
        tool_calls_is_list,
    )
}
ASSERTIONS["content_is_json_object"] = _content_is_json_object


def check_calls(stream: Stream, value: list[dict[str, Any]], index: int = 0) -> None:
    found = [{"name": call.name, "arguments": json.loads(call.text)} for call in calls_of(stream, index)]
    assert found == value
    assert json.dumps(found) == json.dumps(value)


def check_calls_by_index(stream: Stream, value: list[list[dict[str, Any]]]) -> None:
    for index, calls in enumerate(value):
        check_calls(stream, calls, index)


def check_arguments_text(stream: Stream, value: list[str]) -> None:
    assert [call.text for call in calls_of(stream)] == value


def check_num_entries(stream: Stream, value: int) -> None:
    parts = [choice["logprobs"] for choice in stream.choices() if choice.get("logprobs")]
    assert sum(len(part["content"]) for part in parts) == value


TOOL_EXPECTATIONS: dict[str, Callable[[Stream, Any], None]] = {
    "tool_calls": check_calls,
    "tool_calls_by_index": check_calls_by_index,
    "arguments_text": check_arguments_text,
    "logprob_entries": check_num_entries,
}
