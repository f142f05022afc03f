"""Tools through the official `openai` client: plain calls, streaming helpers, parsed tools, deprecated forms."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from openai import OpenAI
from openai.lib.streaming.chat import FunctionToolCallArgumentsDoneEvent
from pydantic import BaseModel

from harness.server_thread import ServerThread

MESSAGES: Any = [{"role": "user", "content": "When is high water in Brest?"}]


class TideAt(BaseModel):
    port: str
    unit: Literal["m", "ft"]


PARSED_TOOL = openai.pydantic_function_tool(TideAt, name="tide_at")
ARGUMENTS = '{"port": "Brest", "unit": "m"}'
CALL = f'<tool_call>\n{{"name": "tide_at", "arguments": {ARGUMENTS}}}\n</tool_call>'


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60) as connected:
        yield connected


def playing(text: str) -> dict[str, Any]:
    pieces = [char.encode().hex() for char in text]
    return {"x_script": {"pieces": pieces, "step_tokens": [4] * 9, "parsers": {"tool": "hermes"}}}


def ask(client: OpenAI, server: ServerThread, text: str, **members: Any) -> Any:
    given = {
        "model": server.model,
        "messages": MESSAGES,
        "tools": [PARSED_TOOL],
        "extra_body": playing(text),
        **members,
    }
    return client.chat.completions.create(**given)


def test_a_call_can_be_answered_and_the_conversation_goes_on(client: OpenAI, server: ServerThread) -> None:
    message = ask(client, server, CALL).choices[0].message
    (call,) = message.tool_calls
    assert (call.type, call.function.name, call.function.arguments) == ("function", "tide_at", ARGUMENTS)
    history = [*MESSAGES, message, {"role": "tool", "tool_call_id": call.id, "content": "6.1 m at 18:02"}]
    answer = ask(client, server, "At 18:02.", messages=history)
    assert answer.choices[0].message.content == "At 18:02."
    assert answer.choices[0].message.tool_calls is None


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "tide_at"}}])
def test_a_stream_is_put_together_by_the_clients_own_helper(client: OpenAI, server: ServerThread, choice: Any) -> None:
    with client.chat.completions.stream(
        model=server.model,
        messages=MESSAGES,
        tools=[PARSED_TOOL],
        tool_choice=choice,
        extra_body=playing(f"Let me see. {CALL}{CALL}"),
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    done = [event for event in events if isinstance(event, FunctionToolCallArgumentsDoneEvent)]
    assert {event.name for event in done} == {"tide_at"}
    assert {event.arguments for event in done} == {ARGUMENTS}
    message = final.choices[0].message
    assert message.content == "Let me see. "
    calls = message.tool_calls or []
    assert [call.function.parsed_arguments for call in calls] == [TideAt(port="Brest", unit="m")] * len(calls)
    assert len(calls) == (2 if isinstance(choice, str) else 1)
    assert final.choices[0].finish_reason == ("tool_calls" if isinstance(choice, str) else "stop")


def test_parsed_tools_come_back_as_their_models(client: OpenAI, server: ServerThread) -> None:
    answer = client.chat.completions.parse(
        model=server.model, messages=MESSAGES, tools=[PARSED_TOOL], extra_body=playing(CALL)
    )
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.function.parsed_arguments == TideAt(port="Brest", unit="m")


def test_a_parsed_answer_and_parsed_tools_go_together(client: OpenAI, server: ServerThread) -> None:
    class Height(BaseModel):
        metres: float

    for text, is_call in ((CALL, True), ('{"metres": 6.1}', False)):
        answer = client.chat.completions.parse(
            model=server.model,
            messages=MESSAGES,
            tools=[PARSED_TOOL],
            response_format=Height,
            extra_body=playing(text),
        )
        message = answer.choices[0].message
        assert bool(message.tool_calls) == is_call
        assert message.parsed == (None if is_call else Height(metres=6.1))


def test_custom_tools_carry_text(client: OpenAI, server: ServerThread) -> None:
    tool: Any = {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}
    written = json.dumps({"name": "sql", "arguments": {"input": 'SELECT "a"\n'}})
    message = ask(client, server, f"<tool_call>{written}</tool_call>", tools=[tool]).choices[0].message
    assert (message.tool_calls[0].type, message.tool_calls[0].custom.input) == ("custom", 'SELECT "a"\n')


def test_deprecated_functions(client: OpenAI, server: ServerThread) -> None:
    functions = [{"name": "tide_at", "parameters": TideAt.model_json_schema()}]
    members: Any = {"tools": openai.omit, "functions": functions, "function_call": "auto"}
    choice = ask(client, server, CALL, **members).choices[0]
    assert (choice.finish_reason, choice.message.function_call.name) == ("function_call", "tide_at")
    deltas = [chunk.choices[0].delta.function_call for chunk in ask(client, server, CALL, stream=True, **members)]
    assert "".join(delta.arguments for delta in deltas if delta is not None) == ARGUMENTS


def test_a_refusal_is_the_clients_own_exception(client: OpenAI, server: ServerThread) -> None:
    tool: Any = {"type": "function", "function": {"name": "other"}}
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, server, CALL, tool_choice=tool)
    assert raised.value.param == "tool_choice"
