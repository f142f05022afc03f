"""What goes out: spliced bytes equal the encoded structs, streams equal whole bodies, rules of the official reader."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.contract.chat import ChatChunk, ChatChunkChoice, Delta
from tidegate.contract.codec import encode_json
from tidegate.inference.event import (
    ChoiceFinished,
    ContentText,
    LogprobEntry,
    ReasoningText,
    StreamEvent,
    ToolCallArguments,
    ToolCallStarted,
)
from tidegate.inference.finish import FinishReason, StopMatch
from tidegate.serving.chat_writer import ChatAssembler, ChatWriter
from tidegate.serving.chunk_head import ChunkHead, ReplyIdentity
from tidegate.serving.completion_writer import CompletionAssembler, CompletionWriter
from tidegate.serving.usage import TokenCounts

IDENTITY = ReplyIdentity("chatcmpl-1", 1700000000, "m", "tg_1")
COUNTS = TokenCounts(num_prompt=3, num_cached=1, num_completion=5)
ENTRY = LogprobEntry("é", -0.25, "é".encode(), (("é", -0.25, "é".encode()), ("x", -2.0, b"x")), 7)
EVENTS: list[tuple[int, StreamEvent]] = [
    (0, ContentText('a"\u2028\\')),
    (1, ContentText("é", (ENTRY,))),
    (0, ContentText("b", (), (5, 6))),
    (0, ChoiceFinished(FinishReason.STOP, StopMatch(text="END"))),
    (1, ChoiceFinished(FinishReason.LENGTH)),
]


def head(name: str, *, include_usage: bool = False, continuous_usage: bool = False) -> ChunkHead:
    return ChunkHead(IDENTITY, name, lambda: COUNTS, include_usage=include_usage, continuous_usage=continuous_usage)


def frames(data: bytes) -> list[Any]:
    parts = data.decode().split("\n\n")
    assert parts[-1] == ""
    assert all(part.startswith("data: ") for part in parts[:-1])
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-1] if part != "data: [DONE]"]


@pytest.mark.parametrize("text", ["a", 'quote " back \\ slash', "é\U0001f600", "\u2028\u2029\u0085", "\x00\n\t", ""])
@pytest.mark.parametrize("include_usage", [False, True])
def test_spliced_chunks_are_byte_for_byte_the_encoded_struct(text: str, include_usage: bool) -> None:
    writer = ChatWriter(head("chat.completion.chunk", include_usage=include_usage), 2)
    struct = ChatChunk(
        id=IDENTITY.reply_id,
        created=IDENTITY.created,
        model=IDENTITY.model,
        system_fingerprint=IDENTITY.fingerprint,
        choices=[ChatChunkChoice(index=1, delta=Delta(content=text), logprobs=None)],
        usage=None if include_usage else msgspec.UNSET,
    )
    assert writer.render(1, ContentText(text)) == b"data: " + encode_json(struct) + b"\n\n"


def test_each_choice_is_opened_once_in_order_with_its_role() -> None:
    opened = frames(ChatWriter(head("chat.completion.chunk"), 3).open())
    assert [chunk["choices"][0]["index"] for chunk in opened] == [0, 1, 2]
    assert {chunk["choices"][0]["delta"]["role"] for chunk in opened} == {"assistant"}
    assert {chunk["choices"][0]["delta"]["content"] for chunk in opened} == {""}


def test_without_include_usage_no_chunk_speaks_of_usage_and_the_end_is_the_marker_alone() -> None:
    writer = ChatWriter(head("chat.completion.chunk"), 2)
    data = writer.open() + b"".join(writer.render(*item) for item in EVENTS)
    assert all("usage" not in chunk for chunk in frames(data))
    assert writer.close() == b"data: [DONE]\n\n"


def test_with_include_usage_every_chunk_has_null_and_the_last_has_the_counts() -> None:  # SSE-3
    writer = ChatWriter(head("chat.completion.chunk", include_usage=True), 2)
    data = writer.open() + b"".join(writer.render(*item) for item in EVENTS)
    assert all(chunk["usage"] is None for chunk in frames(data))
    (last,) = frames(writer.close())
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 3
    assert last["usage"]["total_tokens"] == 8
    assert last["usage"]["prompt_tokens_details"]["cached_tokens"] == 1


def test_continuous_usage_stands_on_every_chunk() -> None:
    writer = ChatWriter(head("chat.completion.chunk", include_usage=True, continuous_usage=True), 1)
    assert [chunk["usage"]["completion_tokens"] for chunk in frames(writer.render(0, ContentText("a")))] == [5]


def test_the_chunks_of_a_chat_add_up_to_its_whole_body() -> None:  # SSE-9
    writer = ChatWriter(head("chat.completion.chunk"), 2)
    assembler = ChatAssembler(IDENTITY, 2, want_logprobs=True)
    streamed: dict[int, dict[str, Any]] = {index: {"content": "", "logprobs": []} for index in (0, 1)}
    for index, event in EVENTS:
        assembler.feed(index, event)
        for chunk in frames(writer.render(index, event)):
            (choice,) = chunk["choices"]
            told = streamed[choice["index"]]
            told["content"] += choice["delta"].get("content", "")
            told["logprobs"] += (choice["logprobs"] or {}).get("content", [])
            told["finish_reason"] = choice["finish_reason"]
    whole = json.loads(assembler.result(COUNTS))
    for index, choice in enumerate(whole["choices"]):
        assert choice["message"]["content"] == streamed[index]["content"]
        assert choice["logprobs"]["content"] == streamed[index]["logprobs"]
        assert choice["finish_reason"] == streamed[index]["finish_reason"]
    assert whole["choices"][0]["stop_reason"] == "END"
    assert "stop_reason" not in whole["choices"][1]
    assert whole["choices"][0]["token_ids"] == [5, 6]
    assert whole["service_tier"] == "default"


def test_a_tool_call_sends_id_type_and_name_once() -> None:
    writer = ChatWriter(head("chat.completion.chunk"), 1)
    events = [ToolCallStarted(0, "call_1", "f"), ToolCallArguments(0, '{"a"'), ToolCallArguments(0, ": 1}")]
    calls = [frames(writer.render(0, event))[0]["choices"][0]["delta"]["tool_calls"][0] for event in events]
    assert calls[0] == {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "f", "arguments": ""},
    }
    assert calls[1:] == [
        {"index": 0, "function": {"arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
    ]


def test_reasoning_and_calls_have_their_members_in_the_whole_body() -> None:
    assembler = ChatAssembler(IDENTITY, 1, want_logprobs=False)
    for event in (
        ReasoningText("why"),
        ToolCallStarted(0, "call_1", "f"),
        ToolCallArguments(0, "{}"),
        ChoiceFinished(FinishReason.TOOL_CALLS),
    ):
        assembler.feed(0, event)
    message = json.loads(assembler.result(COUNTS))["choices"][0]["message"]
    assert message["reasoning_content"] == "why"
    assert message["content"] is None
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_completion_chunks_and_body_have_one_shape_and_agree() -> None:
    events: list[tuple[int, StreamEvent]] = [
        (0, ContentText("p", (LogprobEntry("p", None, b"p", (), 0),))),
        (0, ContentText("é", (ENTRY,))),
        (0, ChoiceFinished(FinishReason.LENGTH)),
    ]
    writer = CompletionWriter(head("text_completion"), 1)
    assembler = CompletionAssembler(IDENTITY, 1, 1)
    lists: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    text = ""
    for index, event in events:
        assembler.feed(index, event)
        (choice,) = frames(writer.render(index, event))[0]["choices"]
        text += choice["text"]
        for name, values in (choice["logprobs"] or {}).items():
            lists[name] += values
    whole = json.loads(assembler.result(COUNTS))["choices"][0]
    assert whole["text"] == text == "pé"
    assert whole["logprobs"] == lists
    assert lists["token_logprobs"] == [None, -0.25]
    assert lists["top_logprobs"] == [None, {"é": -0.25, "x": -2.0}]
    assert whole["finish_reason"] == "length"


def test_zero_logprobs_mean_no_alternatives() -> None:
    entry = LogprobEntry("a", -1.0, b"a")
    writer = CompletionWriter(head("text_completion"), 0)
    (choice,) = frames(writer.render(0, ContentText("a", (entry,))))[0]["choices"]
    assert choice["logprobs"]["token_logprobs"] == [-1.0]
    assert choice["logprobs"]["top_logprobs"] == [{}]


@pytest.mark.parametrize("value", [float("-inf"), float("inf"), float("nan")])
def test_no_number_that_is_not_finite_leaves(value: float) -> None:
    entry = LogprobEntry("a", value, b"a", (("a", value, b"a"),))
    writer = ChatWriter(head("chat.completion.chunk"), 1)
    (token,) = frames(writer.render(0, ContentText("a", (entry,))))[0]["choices"][0]["logprobs"]["content"]
    assert token["logprob"] == -9999.0
    assert token["top_logprobs"][0]["logprob"] == -9999.0


DEAD_END: list[tuple[int, StreamEvent]] = [
    (0, ContentText("ab")),
    (0, ChoiceFinished(FinishReason.STOP, StopMatch(is_dead_end=True))),
]


def test_a_dead_end_is_a_stop_with_its_own_reason_streamed_and_whole() -> None:
    chat, completion = ChatWriter(head("chat.completion.chunk"), 1), CompletionWriter(head("text_completion"), None)
    whole_chat = ChatAssembler(IDENTITY, 1, want_logprobs=False)
    whole_completion = CompletionAssembler(IDENTITY, 1, None)
    for item in DEAD_END:
        whole_chat.feed(*item)
        whole_completion.feed(*item)
    ends = [frames(writer.render(*DEAD_END[1]))[0]["choices"][0] for writer in (chat, completion)]
    ends += [json.loads(whole.result(COUNTS))["choices"][0] for whole in (whole_chat, whole_completion)]
    assert [(end["finish_reason"], end["stop_reason"]) for end in ends] == [("stop", "grammar_dead_end")] * 4
