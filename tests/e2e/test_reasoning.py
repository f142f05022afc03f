"""Reasoning as callers see it: real chat templates, and an engine that plays what such a model would write."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from harness.event_stream import Stream, read_stream
from harness.raw_http import Answer, request
from harness.real_templates import sources
from harness.server_thread import ServerThread

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
BEFORE, INSIDE, HARMONY, PLAIN = "Qwen3-0.6B", "Qwen3.5-4B", "openai-gpt-oss-120b.jinja", "Qwen2.5-7B-Instruct"
"""Templates whose prompt leaves it to the model to begin, whose prompt begins, which have channels, or no reasoning."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ServerThread]]:
    folder: Path = tmp_path_factory.mktemp("templates")
    with ExitStack() as stack:
        running = {}
        for name in (BEFORE, INSIDE, HARMONY, PLAIN):
            file = folder / f"{name}.jinja"
            file.write_text(sources()[name], "utf-8")
            more: dict[str, Any] = {"api__reasoning_field": "reasoning"} if name == INSIDE else {}
            running[name] = stack.enter_context(ServerThread("scripted", model__chat_template=str(file), **more))
        yield running


def play(server: ServerThread, pieces: list[str], **members: Any) -> dict[str, Any]:
    """Returns the whole answer of a script, after the same as a stream has said the same."""
    finish = members.pop("finish", "eos")
    script = {"pieces": [piece.encode().hex() for piece in pieces], "finish": finish, **members.pop("script", {})}
    body = {"model": server.model, "messages": HI, "x_script": script, **members}
    answer = request(server.port, "POST", CHAT, body)
    assert answer.status == 200, answer.body
    whole: dict[str, Any] = answer.json()
    streamed = request(server.port, "POST", CHAT, {**body, "stream": True, "stream_options": {"include_usage": True}})
    stream = read_stream(streamed.body)
    assert stream.findings == []
    same(whole, stream)
    return whole


def same(whole: dict[str, Any], stream: Stream) -> None:
    message = whole["choices"][0]["message"]
    member = "reasoning" if "reasoning" in message else "reasoning_content"
    assert stream.reasoning(member=member) == message.get(member, "")
    assert stream.content() == (message["content"] or "")
    assert stream.usage == whole["usage"]
    assert stream.finish_reasons() == [whole["choices"][0]["finish_reason"]]


def told(whole: dict[str, Any]) -> tuple[str | None, str | None, int]:
    """Reasoning, content, and how many tokens were reasoning."""
    message = whole["choices"][0]["message"]
    reasoning = message.get("reasoning", message.get("reasoning_content"))
    return reasoning, message["content"], whole["usage"]["completion_tokens_details"]["reasoning_tokens"]


def refusal(answer: Answer) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status, error["code"], error["param"]


def ask(server: ServerThread, path: str = CHAT, **members: Any) -> Answer:
    script = {} if path != CHAT else {"x_script": {"pieces": ["61"]}}
    return request(server.port, "POST", path, {"model": server.model, "messages": HI, **script, **members})


OUTPUTS: list[tuple[str, list[str], dict[str, Any], tuple[str | None, str, int]]] = [
    # The template, the tokens, further members of the request; reasoning, content, tokens of reasoning.
    (BEFORE, ["<think>", "\n", "why", "</think>", "\n\n", "so"], {}, ("\nwhy", "so", 3)),
    (BEFORE, ["<th", "ink>w", "hy</thi", "nk>\n", "so"], {}, ("why", "so", 3)),
    (BEFORE, ["<think>why</think>so", "!"], {}, ("why", "so!", 1)),
    (BEFORE, ["so", "</think>", "!"], {}, (None, "so</think>!", 0)),
    (BEFORE, ["so"], {"chat_template_kwargs": {"enable_thinking": False}}, (None, "so", 0)),
    (BEFORE, ["so"], {"reasoning_effort": "none"}, (None, "so", 0)),
    (BEFORE, ["<think>", "a", "b"], {"finish": "length"}, ("ab", "", 3)),
    (BEFORE, ["<think>", "a", "b", "c"], {"max_tokens": 2}, ("a", "", 2)),
    (BEFORE, ["<think>", "a STOP b", "</think>", "c ST", "OP d"], {"stop": "STOP"}, ("a STOP b", "c ", 2)),
    (INSIDE, ["why", "</think>", "\n\n", "so"], {}, ("why", "so", 1)),
    (INSIDE, ["why", "</", "this", "</think>", "</think>"], {}, ("why</this", "</think>", 3)),
    (INSIDE, ["why"], {}, ("why", "", 1)),
    (INSIDE, ["so"], {"chat_template_kwargs": {"enable_thinking": False}}, (None, "so", 0)),
    (INSIDE, ["so"], {"reasoning_effort": "none"}, (None, "so", 0)),
    (INSIDE, ["why</think>", "so"], {"messages": [{"role": "user", "content": "<think></think>"}]}, ("why", "so", 1)),
    (PLAIN, ["<think>", "x", "</think>", "y"], {}, (None, "<think>x</think>y", 0)),
    (PLAIN, ["so"], {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}, (None, "so", 0)),
]


@pytest.mark.parametrize(("name", "pieces", "members", "expected"), OUTPUTS, ids=[str(i) for i in range(len(OUTPUTS))])
def test_reasoning_and_content_are_told_apart_by_the_prompt_and_the_output(
    servers: dict[str, ServerThread],
    name: str,
    pieces: list[str],
    members: dict[str, Any],
    expected: tuple[str | None, str, int],
) -> None:
    for steps in ([], [2], [len(pieces)]):
        script = {"step_tokens": steps * len(pieces)} if steps else {}
        whole = play(servers[name], pieces, script=script, **members)
        assert told(whole) == expected
        member = "reasoning" if name == INSIDE else "reasoning_content"
        assert (member in whole["choices"][0]["message"]) is (expected[0] is not None)


def test_control_tokens_that_mark_reasoning_are_read_and_never_shown(servers: dict[str, ServerThread]) -> None:
    script = {"pieces_special": {"0": "<think>", "1": "</think>", "2": "<|im_end|>"}}
    whole = play(servers[BEFORE], ["why", "so"], script=script)
    assert told(whole) == ("why", "so", 2)


def test_channels_are_reasoning_and_content(servers: dict[str, ServerThread]) -> None:
    pieces = ["<|channel|>", "analysis", "<|message|>", "why", "<|end|>", "<|start|>", "assistant"]
    pieces += ["<|channel|>", "final", "<|message|>", "so"]
    assert told(play(servers[HARMONY], pieces)) == ("why", "so", 4)


def test_log_probabilities_are_those_of_content(servers: dict[str, ServerThread]) -> None:
    pieces = ["<think>", "why", "</think>", "\n\n", "so", "!"]
    whole = play(servers[BEFORE], pieces, logprobs=True, script={"logprobs": [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]})
    entries = whole["choices"][0]["logprobs"]["content"]
    assert [(entry["token"], entry["logprob"]) for entry in entries] == [("so", -5.0), ("!", -6.0)]


@pytest.mark.parametrize(
    ("last", "pieces", "expected"),
    [
        ({"content": "<think>so far"}, [" it", "</think>", "so"], (" it", "so")),
        ({"content": None, "reasoning_content": "so far"}, [" it", "</think>", "so"], (" it", "so")),
        ({"content": "", "reasoning": "so far"}, [" it", "</think>", "so"], (" it", "so")),
        ({"content": "<think>a</think>b"}, ["so"], (None, "so")),
        ({"content": "b", "reasoning_content": "a"}, ["so"], (None, "so")),
        ({"content": "b"}, ["so"], (None, "so")),
    ],
    ids=["content", "reasoning_content", "reasoning", "closed", "both", "plain"],
)
def test_a_continued_message_goes_on_where_it_was(
    servers: dict[str, ServerThread], last: dict[str, Any], pieces: list[str], expected: tuple[str | None, str]
) -> None:
    messages = [*HI, {"role": "assistant", **last}]
    whole = play(servers[BEFORE], pieces, messages=messages, continue_final_message=True)
    assert told(whole)[:2] == expected


def test_reasoning_that_a_template_cannot_show_cannot_be_continued(servers: dict[str, ServerThread]) -> None:
    messages = [*HI, {"role": "assistant", "content": None, "reasoning_content": "so far"}]
    for name, status, code in ((PLAIN, 400, "invalid_template_input"), (HARMONY, 422, "unsupported_parameter")):
        answer = ask(servers[name], messages=messages, continue_final_message=True)
        assert refusal(answer) == (status, code, "continue_final_message")


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (BEFORE, {"reasoning_effort": "low"}, "reasoning_effort"),
    (BEFORE, {"chat_template_kwargs": {"thinking": False}}, "chat_template_kwargs.thinking"),
    (BEFORE, {"chat_template_kwargs": {"reasoning_effort": "low"}}, "chat_template_kwargs.reasoning_effort"),
    (HARMONY, {"reasoning_effort": "none"}, "reasoning_effort"),
    (HARMONY, {"chat_template_kwargs": {"enable_thinking": False}}, "chat_template_kwargs.enable_thinking"),
    (PLAIN, {"reasoning_effort": "high"}, "reasoning_effort"),
    (PLAIN, {"chat_template_kwargs": {"enable_thinking": True}}, "chat_template_kwargs.enable_thinking"),
]


@pytest.mark.parametrize(("name", "members", "param"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_a_template_cannot_be_told_is_422(
    servers: dict[str, ServerThread], name: str, members: dict[str, Any], param: str
) -> None:
    for path in (CHAT, "/v1/tokenize"):
        assert refusal(ask(servers[name], path, **members)) == (422, "unsupported_parameter", param)


def test_a_variable_that_no_template_reads_is_reported(servers: dict[str, ServerThread]) -> None:
    kwargs = {"enable_thinking": True, "mood": "good"}
    answer = ask(servers[BEFORE], chat_template_kwargs=kwargs)
    assert answer.headers["tidegate-ignored-fields"] == "chat_template_kwargs.mood"


@pytest.mark.parametrize("policy", ["reject", "ignore"])
def test_the_policy_on_unknown_fields_holds_for_template_variables(policy: str) -> None:
    with ServerThread("scripted", api__unknown_fields=policy) as server:
        answer = ask(server, chat_template_kwargs={"mood": "good"})
        if policy == "reject":
            assert refusal(answer) == (400, "unknown_parameter", "chat_template_kwargs.mood")
        else:
            assert (answer.status, answer.headers.get("tidegate-ignored-fields")) == (200, None)


def test_a_level_of_reasoning_reaches_the_template(servers: dict[str, ServerThread]) -> None:
    server = servers[HARMONY]
    counts = {}
    for effort in ("low", "medium", "high"):
        usage = ask(server, reasoning_effort=effort).json()["usage"]
        counts[effort] = usage["prompt_tokens"]
        assert ask(server, "/v1/tokenize", reasoning_effort=effort).json()["count"] == counts[effort]
    assert counts["medium"] - counts["low"] == len("medium") - len("low")
    kwargs = {"chat_template_kwargs": {"reasoning_effort": "low"}}
    assert ask(server, reasoning_effort="medium", **kwargs).json()["usage"]["prompt_tokens"] == counts["low"]


def test_what_the_request_sets_itself_wins_over_the_effort(servers: dict[str, ServerThread]) -> None:
    def count(**members: Any) -> int:
        return int(ask(servers[BEFORE], **members).json()["usage"]["prompt_tokens"])

    on = count(chat_template_kwargs={"enable_thinking": True})
    assert count(reasoning_effort="none") > on
    assert count(reasoning_effort="none", chat_template_kwargs={"enable_thinking": True}) == on == count()


def test_tokenize_counts_tools_as_a_chat_does(servers: dict[str, ServerThread]) -> None:
    for server in servers.values():
        counted = ask(server, "/v1/tokenize", tools=[TOOL]).json()["count"]
        assert counted == ask(server, tools=[TOOL]).json()["usage"]["prompt_tokens"]
        assert counted > ask(server, "/v1/tokenize").json()["count"]


def test_the_contract_tells_formats_and_levels(servers: dict[str, ServerThread]) -> None:
    def described(name: str) -> tuple[Any, Any, Any, Any]:
        [model] = request(servers[name].port, "GET", "/v1/contract").json()["models"]
        [chat] = [one for one in model["endpoints"] if one["path"] == CHAT]
        parts = model["revision_parts"]
        effort = chat["fields"]["reasoning_effort"]
        return parts["tool_format"], parts["reasoning_format"], model["reasoning_field"], effort["use"]

    assert described(BEFORE) == ("hermes", "hermes", "reasoning_content", "acts")
    assert described(INSIDE) == ("qwen3_coder", "qwen3_coder", "reasoning", "acts")
    assert described(HARMONY) == ("harmony", "harmony", "reasoning_content", "acts")
    assert described(PLAIN) == ("hermes", None, None, "not_served")


@pytest.mark.parametrize("parsers", [{"reasoning": "deepseek_r2"}, {"reasoning": "llama3_json"}])
def test_a_script_may_not_name_a_parser_that_is_not_here(
    servers: dict[str, ServerThread], parsers: dict[str, str]
) -> None:
    answer = ask(servers[PLAIN], x_script={"pieces": ["61"], "parsers": parsers})
    assert refusal(answer) == (422, "unsupported_parameter", "x_script.parsers.reasoning")


SCRIPTED: list[tuple[dict[str, Any], list[str], tuple[str | None, str]]] = [
    ({"parsers": {"reasoning": "deepseek_r1"}}, ["why</think>so"], ("why", "so")),
    ({"parsers": {"reasoning": "deepseek_r1"}, "thinking": False}, ["so"], (None, "so")),
    ({"parsers": {"reasoning": "qwen3"}}, ["so"], (None, "so")),
    ({"parsers": {"reasoning": "qwen3"}, "thinking": True}, ["why</think>so"], ("why", "so")),
    ({"parsers": {"reasoning": "none"}}, ["<think>x"], (None, "<think>x")),
]


@pytest.mark.parametrize(("script", "pieces", "expected"), SCRIPTED, ids=[str(i) for i in range(len(SCRIPTED))])
def test_a_script_says_how_it_marks_reasoning(
    servers: dict[str, ServerThread], script: dict[str, Any], pieces: list[str], expected: tuple[str | None, str]
) -> None:
    assert told(play(servers[PLAIN], pieces, script=script))[:2] == expected


def test_the_official_client_reads_reasoning(servers: dict[str, ServerThread]) -> None:
    server = servers[BEFORE]
    script = {"pieces": [text.encode().hex() for text in ("<think>", "wh", "y", "</think>", "so")]}
    body: dict[str, Any] = {"x_script": script}
    with OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        messages: Any = HI
        whole = client.chat.completions.create(model=server.model, messages=messages, extra_body=body)
        stream = client.chat.completions.create(model=server.model, messages=messages, extra_body=body, stream=True)
        deltas = [chunk.choices[0].delta for chunk in stream]
    message: Any = whole.choices[0].message
    assert (message.reasoning_content, message.content) == ("why", "so")
    assert whole.usage is not None
    assert whole.usage.completion_tokens_details is not None
    assert whole.usage.completion_tokens_details.reasoning_tokens == 3
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "why"
    assert json.dumps([delta.content for delta in deltas if delta.content]) == '["so"]'
