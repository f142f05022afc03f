"""openai-agents: runs with function tools, structured output, handoffs, streaming, over the chat completions model."""

import asyncio
import os
from typing import Literal

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.items import ToolCallItem, ToolCallOutputItem
from openai import APIError, AsyncOpenAI, NotFoundError
from pydantic import BaseModel, Field

set_tracing_disabled(True)
PLAIN = "The tide is high at noon, and again at midnight."


class Tide(BaseModel):
    """The tide at a port."""

    port: Literal["Brest", "Dover", "Saint-Malo"]
    height_m: int = Field(ge=0, le=20)
    is_rising: bool


@function_tool
def tide_at(port: str, day: int) -> str:
    """Tells the tide at a port.

    Args:
        port: Its name.
        day: Days from now.
    """
    return f"high at {port} on day {day}"


@function_tool
def port_of(ship: Literal["Ida", "Ada"]) -> str:
    """Tells where a ship is."""
    return f"{ship} is at Brest"


def model(kind: str, name: str | None = None) -> OpenAIChatCompletionsModel:
    client = AsyncOpenAI(base_url=os.environ[f"{kind}_URL"], api_key="none", max_retries=0, timeout=120)
    return OpenAIChatCompletionsModel(name or os.environ[f"{kind}_MODEL"], client)


def agent(kind: str, **options: object) -> Agent:
    return Agent(name="pilot", instructions="You know the tides.", model=model(kind), **options)


def test_a_plain_run_answers_with_usage() -> None:
    result = Runner.run_sync(agent("SCRIPTED"), "When is the tide high?")
    usage = result.context_wrapper.usage
    assert result.final_output == PLAIN
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens > 0


def test_the_real_model_answers_in_text() -> None:
    settings = ModelSettings(temperature=0, max_tokens=8)
    result = Runner.run_sync(agent("REAL", model_settings=settings), "What is salty?")
    assert result.final_output
    assert result.context_wrapper.usage.output_tokens <= 8


def test_a_function_tool_is_run_and_its_answer_read() -> None:
    result = Runner.run_sync(
        agent("SCRIPTED", tools=[tide_at]),
        '[[{"calls": [["tide_at", {"port": "Brest", "day": 2}]]}]]',
    )
    assert result.final_output == "The tools said: high at Brest on day 2"
    assert [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)] == [
        "high at Brest on day 2"
    ]


def test_two_calls_of_one_answer_are_both_run() -> None:
    calls = '[["tide_at", {"port": "Brest", "day": 1}], ["port_of", {"ship": "Ida"}]]'
    result = Runner.run_sync(agent("SCRIPTED", tools=[tide_at, port_of]), f'[[{{"calls": {calls}}}]]')
    assert result.final_output == "The tools said: high at Brest on day 1; Ida is at Brest"


@pytest.mark.parametrize("choice", ["required", "port_of"])
def test_the_real_model_calls_a_tool_when_it_must(choice: str) -> None:
    pilot = agent(
        "REAL",
        tools=[port_of],
        tool_use_behavior="stop_on_first_tool",
        model_settings=ModelSettings(tool_choice=choice, temperature=0, max_tokens=100),
    )
    result = Runner.run_sync(pilot, "Where is Ida?")
    assert str(result.final_output).endswith("is at Brest")


@pytest.mark.parametrize("kind", ["REAL", "SCRIPTED"])
def test_an_output_type_is_kept(kind: str) -> None:
    settings = ModelSettings(temperature=0, max_tokens=200)
    pilot = agent(kind, output_type=Tide, model_settings=settings)
    assert isinstance(Runner.run_sync(pilot, "The tide of 7 metres at 'Brest'?").final_output, Tide)


def test_a_tool_comes_before_the_output_type() -> None:
    result = Runner.run_sync(agent("SCRIPTED", tools=[tide_at], output_type=Tide), "The tide of 7 metres at 'Brest'?")
    assert result.final_output == Tide(port="Brest", height_m=7, is_rising=True)
    assert any(isinstance(item, ToolCallItem) for item in result.new_items)


def test_a_handoff_is_a_call_that_changes_the_agent() -> None:
    expert = Agent(name="expert", instructions="You know more.", model=model("SCRIPTED"))
    result = Runner.run_sync(agent("SCRIPTED", handoffs=[expert]), "Hand over, please.")
    assert result.last_agent.name == "expert"
    assert result.final_output == PLAIN


def test_a_streamed_run_gives_text_in_parts_and_usage() -> None:
    async def stream() -> tuple[list[str], int]:
        result = Runner.run_streamed(agent("SCRIPTED"), "When is the tide high?")
        parts = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        return parts, result.context_wrapper.usage.requests

    parts, requests = asyncio.run(stream())
    assert len(parts) > 3
    assert "".join(parts) == PLAIN
    assert requests == 1


def test_a_streamed_run_calls_tools_and_goes_on() -> None:
    async def stream() -> tuple[list[str], str]:
        result = Runner.run_streamed(
            agent("SCRIPTED", tools=[tide_at]), '[[{"calls": [["tide_at", {"port": "Dôver 🌊", "day": 2}]]}]]'
        )
        names = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
        return names, result.final_output

    names, output = asyncio.run(stream())
    assert names == ["tool_called", "tool_output", "message_output_created"]
    assert output == "The tools said: high at Dôver 🌊 on day 2"


def test_a_streamed_output_type_is_kept() -> None:
    async def stream() -> object:
        result = Runner.run_streamed(agent("SCRIPTED", output_type=Tide), "7 metres at 'Brest'?")
        async for _ in result.stream_events():
            pass
        return result.final_output

    assert asyncio.run(stream()) == Tide(port="Brest", height_m=7, is_rising=True)


def test_a_second_turn_takes_the_first_with_its_calls() -> None:
    pilot = agent("SCRIPTED", tools=[tide_at])
    first = Runner.run_sync(pilot, '[[{"calls": [["tide_at", {"port": "Brest", "day": 1}]]}]]')
    turn = [*first.to_input_list(), {"role": "user", "content": '[[{"say": "You are welcome."}]]'}]
    assert Runner.run_sync(pilot, turn).final_output == "You are welcome."


def test_an_unknown_model_is_a_not_found_error() -> None:
    lost = Agent(name="lost", model=model("REAL", "no-such-model"))
    with pytest.raises(NotFoundError, match="no-such-model"):
        Runner.run_sync(lost, "Hi")


def test_a_stream_that_fails_midway_raises() -> None:
    async def stream() -> None:
        result = Runner.run_streamed(agent("SCRIPTED"), '[[{"say": "The tide is high.", "error_after": 2}]]')
        async for _ in result.stream_events():
            pass

    with pytest.raises(APIError):
        asyncio.run(stream())
