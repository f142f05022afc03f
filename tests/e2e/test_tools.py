"""Tool calls over HTTP, played by the scripted engine in every family's own format."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.parsed_output import TOOLS
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread, wait_until
from harness.stream_assertions import Told, stream_equals_nonstream
from harness.streamed_calls import calls_of, function_call_of
from harness.tool_assertions import same_calls
from tidegate.parsers.families import FAMILIES

CHAT = "/v1/chat/completions"
PING = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
OFFERED = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()]
FUNCTIONS = [tool["function"] for tool in OFFERED]
FREE = {"type": "custom", "custom": {"name": "free"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with ServerThread("scripted", server__state_dir=str(tmp_path_factory.mktemp("state"))) as running:
        yield running


def script_of(text: str, family: str = "hermes", **members: Any) -> dict[str, Any]:
    """A script with one token for each character."""
    pieces = [char.encode().hex() for char in text]
    return {"pieces": pieces, "parsers": {"tool": family}, **members}


def ask(server: ServerThread, script: dict[str, Any], *, headers: Any = None, **members: Any) -> Answer:
    tools = {} if "functions" in members or "tools" in members else {"tools": OFFERED}
    body = {"model": server.model, "messages": [{"role": "user", "content": "hi"}], "x_script": script}
    return request(server.port, "POST", CHAT, {**body, **tools, **members}, headers)


def ask_both(server: ServerThread, script: dict[str, Any], **members: Any) -> Told:
    """Asks in both modes; whatever the test is about, both tell of the same."""
    answer = ask(server, script, stream=True, **members)
    whole = ask(server, script, **members)
    assert (answer.status, whole.status) == (200, 200), answer.body + whole.body
    stream = read_stream(answer.body)
    assert (stream.findings, stream.num_done, stream.errors) == ([], 1, [])
    told = Told(answer, stream, whole.json(), members.get("n", 1), is_chat=True)
    stream_equals_nonstream(told)
    same_calls(told)
    return told


def message_of(told: Told) -> dict[str, Any]:
    return dict(told.whole["choices"][0]["message"])


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_call_of_every_family_comes_out_alike_in_both_modes(server: ServerThread, name: str) -> None:
    told = ask_both(server, script_of(FAMILIES[name].example, name, step_tokens=[3, 1, 5]))
    (call,) = calls_of(told.stream)
    assert (call.name, json.loads(call.text)) == ("tide_at", {"port": "Brest"})
    assert told.stream.finish_reasons() == ["tool_calls"]
    assert message_of(told)["content"] is None
    assert told.whole["usage"]["completion_tokens"] == len(FAMILIES[name].example)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_call_cut_by_the_budget_stands_as_far_as_it_came(server: ServerThread, name: str) -> None:
    script = script_of(FAMILIES[name].example, name)
    told = ask_both(server, script, max_tokens=FAMILIES[name].example.index("Brest") + 2)
    assert told.stream.finish_reasons() == ["length"]
    assert told.stream.content() == ""
    for call in calls_of(told.stream):
        assert '{"port": "Brest'.startswith(call.text[:13])


def test_text_stands_before_between_and_after_calls(server: ServerThread) -> None:
    told = ask_both(server, script_of(f"Let me see. {PING}\n{PING} Done."))
    assert told.stream.content() == "Let me see.  Done."
    assert [call.name for call in calls_of(told.stream)] == ["ping", "ping"]
    ids = [call.call_id for call in calls_of(told.stream)]
    assert len(set(ids)) == 2
    assert all(len(one) == len("call_") + 24 and one.startswith("call_") for one in ids)
    assert message_of(told)["content"] == "Let me see.  Done."


def test_a_format_with_ids_of_its_own_keeps_them(server: ServerThread) -> None:
    told = ask_both(server, script_of(FAMILIES["kimi_k2"].example, "kimi_k2"))
    assert calls_of(told.stream)[0].call_id == message_of(told)["tool_calls"][0]["id"] == "functions.tide_at:0"


ENDS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 2, "tool_calls"),
    ({"tool_choice": "auto"}, 2, "tool_calls"),
    ({"tool_choice": "required"}, 2, "tool_calls"),
    ({"parallel_tool_calls": False}, 1, "tool_calls"),
    ({"tool_choice": "required", "parallel_tool_calls": False}, 1, "tool_calls"),
    ({"tool_choice": {"type": "function", "function": {"name": "ping"}}}, 1, "stop"),
    ({"tool_choice": "none"}, 0, "stop"),
    ({"tools": []}, 0, "stop"),
    ({"tools": OFFERED[:1]}, 0, "stop"),
    ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
        {"type": "function", "function": {"name": "tide_at"}}]}}}, 0, "stop"),
]  # fmt: skip


@pytest.mark.parametrize(("members", "num_calls", "reason"), ENDS, ids=[str(i) for i in range(len(ENDS))])
def test_a_choice_of_tools_decides_what_is_a_call_and_how_it_ends(
    server: ServerThread, members: dict[str, Any], num_calls: int, reason: str
) -> None:
    told = ask_both(server, script_of(PING + PING), **members)
    assert len(calls_of(told.stream)) == num_calls
    assert told.stream.finish_reasons() == [reason]
    assert ("tool_calls" in message_of(told)) == (num_calls > 0)
    assert told.stream.content() == ("" if num_calls else PING + PING)


def test_after_the_only_call_that_is_allowed_the_engine_stops(server: ServerThread) -> None:
    script = script_of(PING + "and so on", repeat=1000, delays_s=[0.0005])
    told = ask_both(server, script, parallel_tool_calls=False)
    assert told.whole["usage"]["completion_tokens"] == len(PING)
    wait_until(lambda: server.baseline().num_live == 0, "nothing is running")


def test_deprecated_functions_are_answered_in_their_own_words(server: ServerThread) -> None:
    script = script_of(f"Hm {FAMILIES['hermes'].example}{PING}")
    for choice, reason in ((None, "function_call"), ("auto", "function_call"), ({"name": "tide_at"}, "stop")):
        told = ask_both(server, script, functions=FUNCTIONS, function_call=choice)
        call = {"name": "tide_at", "arguments": '{"port": "Brest"}'}
        assert function_call_of(told.stream) == message_of(told)["function_call"] == call
        assert told.stream.finish_reasons() == [reason]
        assert "tool_calls" not in message_of(told)
        assert message_of(told)["content"] == "Hm "
    told = ask_both(server, script, functions=FUNCTIONS, function_call="none")
    assert function_call_of(told.stream) is None
    assert told.stream.finish_reasons() == ["stop"]


def test_a_custom_tool_is_called_with_plain_text(server: ServerThread) -> None:
    text = 'SELECT "a"\nFROM b -- é😀'
    written = json.dumps({"name": "free", "arguments": {"input": text}})
    told = ask_both(server, script_of(f"<tool_call>{written}</tool_call>"), tools=[FREE, *OFFERED])
    (call,) = message_of(told)["tool_calls"]
    assert {**call, "id": ""} == {"id": "", "type": "custom", "custom": {"name": "free", "input": text}}
    assert calls_of(told.stream)[0].text == text
    assert told.stream.finish_reasons() == ["tool_calls"]


def test_every_choice_has_its_own_calls(server: ServerThread) -> None:
    other = FAMILIES["hermes"].example
    choices = [{"pieces": [char.encode().hex() for char in text]} for text in (PING, "no call", other + PING)]
    told = ask_both(server, {"choices": choices, "parsers": {"tool": "hermes"}}, n=3)
    assert [len(calls_of(told.stream, index)) for index in range(3)] == [1, 0, 2]
    assert [told.stream.finish_reasons(index)[0] for index in range(3)] == ["tool_calls", "stop", "tool_calls"]


def test_entries_are_told_for_content_only(server: ServerThread) -> None:
    told = ask_both(server, script_of(f"So {PING} it"), logprobs=True, top_logprobs=0)
    entries = told.entries()
    assert "".join(entry["token"] for entry in entries) == told.stream.content() == "So  it"
    assert told.whole["choices"][0]["logprobs"]["content"] == entries
    told = ask_both(server, script_of(PING), logprobs=True)
    assert told.entries() == []


def test_a_slow_reader_gets_the_same_call_in_fewer_pieces(server: ServerThread) -> None:
    text = "x" * 20_000
    written = f'<tool_call>{{"name": "note_add", "arguments": {{"text": "{text}"}}}}</tool_call>'
    script = script_of(written, step_tokens=[500] * 100)
    told = ask_both(server, script)
    (call,) = calls_of(told.stream)
    assert json.loads(call.text) == {"text": text}
    assert len(told.stream.chunks) < 200


def test_a_replay_has_the_same_calls_with_the_same_ids(server: ServerThread) -> None:
    for stream in (True, False):
        headers = {"Idempotency-Key": f"tools-{stream}"}
        first = ask(server, script_of(PING), headers=headers, stream=stream)
        second = ask(server, script_of(PING), headers=headers, stream=stream)
        assert second.headers["idempotent-replayed"] == "true"
        assert first.body == second.body
        assert b'"call_' in first.body


def test_without_a_named_format_the_generic_one_is_read_and_none_reads_nothing(server: ServerThread) -> None:
    script = script_of(FAMILIES["json"].example)
    del script["parsers"]
    assert [call.name for call in calls_of(ask_both(server, script).stream)] == ["tide_at"]
    told = ask_both(server, script_of(PING, "none"))
    assert told.stream.content() == PING


def test_tools_are_part_of_the_prompt_and_a_choice_of_none_leaves_them_out(server: ServerThread) -> None:
    def count(**members: Any) -> int:
        whole = ask(server, script_of("x", "json"), **members).json()
        return int(whole["usage"]["prompt_tokens"])

    messages = [{"role": "user", "content": "hi"}]
    body = {"messages": messages, "tools": OFFERED}
    told = request(server.port, "POST", "/v1/tokenize", body).json()
    assert count() == told["count"]
    assert count(tool_choice="none") == count(tools=[])
    assert count(functions=FUNCTIONS) == count(parallel_tool_calls=False)


def test_the_example_of_the_page_works(server: ServerThread) -> None:
    page = (Path(__file__).parents[2] / "docs/tool_calls.md").read_text("utf-8")
    body = page.partition("-H 'Content-Type: application/json' -d '")[2].partition("'\n```")[0]
    choice = request(server.port, "POST", CHAT, body.encode()).json()["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "tide_at"
    assert choice["finish_reason"] == "tool_calls"


def test_a_family_that_is_not_here_is_refused(server: ServerThread) -> None:
    answer = ask(server, script_of("x", "nobody"))
    assert (answer.status, answer.json()["error"]["param"]) == (422, "x_script.parsers.tool")


def test_a_schema_that_cannot_be_enforced_is_refused_by_its_place(server: ServerThread) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "contentEncoding": "base64"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert ask(server, script_of("x"), tools=[tool]).status == 200
    broken = {"type": "object", "properties": {"a": {"type": "nothing"}}}
    for members in ({"strict": True}, {}):
        tools = [OFFERED[0], {"type": "function", "function": {"name": "f", "parameters": broken, **members}}]
        choice = "auto" if members else "required"
        answer = ask(server, script_of("x"), tools=tools, tool_choice=choice)
        error = answer.json()["error"]
        assert answer.status == 400
        assert error["param"].startswith("tools[1].function.parameters.properties.a"), error
