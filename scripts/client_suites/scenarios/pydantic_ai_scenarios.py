"""pydantic-ai: agents with tools, output types by tool and by native schema, streaming, reasoning, errors."""

import asyncio
import os
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import Agent, ModelHTTPError, ModelRetry, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.messages import ThinkingPart, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

PLAIN = "The tide is high at noon, and again at midnight."
SETTINGS = {"temperature": 0.0, "max_tokens": 200, "timeout": 120}


class Tide(BaseModel):
    """The tide at a port."""

    model_config = ConfigDict(extra="forbid")
    port: Literal["Brest", "Dover", "Saint-Malo"]
    height_m: int = Field(ge=0, le=20)
    is_rising: bool


def model(kind: str, name: str | None = None) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=os.environ[f"{kind}_URL"], api_key="none")
    return OpenAIChatModel(name or os.environ[f"{kind}_MODEL"], provider=provider)


def test_plain_text_comes_back_with_its_usage() -> None:
    result = Agent(model("SCRIPTED")).run_sync("When is the tide high?")
    assert result.output == PLAIN
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens == 12


def test_the_real_model_answers_in_text() -> None:
    result = Agent(model("REAL"), instructions="Answer in one word.").run_sync(
        "What is salty?", model_settings={"temperature": 0.0, "max_tokens": 8}
    )
    assert result.output
    assert result.usage.output_tokens <= 8


def test_a_tool_is_called_and_its_answer_read() -> None:
    agent = Agent(model("SCRIPTED"))
    asked: list[str] = []

    @agent.tool_plain
    def tide_at(port: str, day: int) -> str:
        """Tells the tide at a port."""
        asked.append(f"{port} {day}")
        return f"high at {port} on day {day}"

    result = agent.run_sync('The tide at \'Brest\' on day 2? [[{"calls": [["tide_at", {"port": "Brest", "day": 2}]]}]]')
    assert asked == ["Brest 2"]
    assert result.output == "The tools said: high at Brest on day 2"
    assert result.usage.requests == 2


def test_two_calls_of_one_answer_both_run() -> None:
    agent = Agent(model("SCRIPTED"))
    asked: list[str] = []

    @agent.tool_plain
    def tide_at(port: str) -> str:
        """Tells the tide at a port."""
        asked.append(port)
        return port

    calls = '[["tide_at", {"port": "Brest"}], ["tide_at", {"port": "Dôver 🌊"}]]'
    result = agent.run_sync(f'[[{{"calls": {calls}}}]]')
    assert sorted(asked) == ["Brest", "Dôver 🌊"]
    assert result.output == "The tools said: Brest; Dôver 🌊"


def test_a_tool_that_wants_another_try_gets_its_words_back() -> None:
    agent = Agent(model("SCRIPTED"))

    @agent.tool_plain(retries=1)
    def tide_at(port: str) -> str:
        """Tells the tide at a port."""
        raise ModelRetry(f"{port} has no tide")

    result = agent.run_sync('[[{"calls": [["tide_at", {"port": "Basel"}]]}]]')
    assert "Basel has no tide" in result.output


@pytest.mark.parametrize("kind", ["REAL", "SCRIPTED"])
@pytest.mark.parametrize("wanted", [ToolOutput, NativeOutput], ids=["tool", "native"])
def test_an_output_type_is_kept(kind: str, wanted: type) -> None:
    agent = Agent(model(kind), output_type=wanted(Tide))
    result = agent.run_sync("The tide of 7 metres at 'Brest'?", model_settings=SETTINGS)
    assert isinstance(result.output, Tide)


def test_a_prompted_output_type_is_kept() -> None:
    agent = Agent(model("SCRIPTED"), output_type=PromptedOutput(Tide))
    assert isinstance(agent.run_sync("The tide of 7 metres at 'Brest'?").output, Tide)


def test_one_of_several_output_types_is_chosen() -> None:
    class Refusal(BaseModel):
        """Why there is no tide."""

        reason: Literal["no sea", "no data"]

    agent = Agent(model("REAL"), output_type=[Tide, Refusal])
    assert isinstance(agent.run_sync("The tide at Basel?", model_settings=SETTINGS).output, Tide | Refusal)


def test_a_tool_comes_before_the_output_type() -> None:
    agent = Agent(model("SCRIPTED"), output_type=Tide)
    asked: list[str] = []

    @agent.tool_plain
    def tide_at(port: str) -> str:
        """Tells the tide at a port."""
        asked.append(port)
        return "7 metres, rising"

    result = agent.run_sync("The tide at 'Brest'?")
    assert asked == ["Brest"]
    assert isinstance(result.output, Tide)


def test_text_streams_in_parts() -> None:
    async def stream() -> list[str]:
        async with Agent(model("SCRIPTED")).run_stream("When is the tide high?") as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    parts = asyncio.run(stream())
    assert len(parts) > 3
    assert "".join(parts) == PLAIN


def test_a_streamed_tool_call_runs_and_the_last_answer_streams() -> None:
    agent = Agent(model("SCRIPTED"))

    @agent.tool_plain
    def tide_at(port: str) -> str:
        """Tells the tide at a port."""
        return f"high at {port}"

    async def stream() -> tuple[str, int]:
        async with agent.run_stream("The tide at 'Brest'?") as result:
            text = "".join([part async for part in result.stream_text(delta=True, debounce_by=None)])
            return text, result.usage.requests

    text, requests = asyncio.run(stream())
    assert text == PLAIN
    assert requests == 2


@pytest.mark.parametrize("wanted", [ToolOutput, NativeOutput], ids=["tool", "native"])
def test_an_output_type_streams_and_ends_whole(wanted: type) -> None:
    async def stream() -> list[Tide]:
        async with Agent(model("SCRIPTED"), output_type=wanted(Tide)).run_stream("7 metres at 'Brest'?") as result:
            return [tide async for tide in result.stream_output(debounce_by=None)]

    assert isinstance(asyncio.run(stream())[-1], Tide)


def test_reasoning_is_a_part_of_its_own() -> None:
    result = Agent(model("SCRIPTED")).run_sync('[[{"think": "The moon is full.", "say": "High."}]]')
    thoughts = [part for part in result.all_messages()[-1].parts if isinstance(part, ThinkingPart)]
    assert result.output == "High."
    assert [part.content.strip() for part in thoughts] == ["The moon is full."]


def test_a_history_with_calls_is_taken_again_by_the_real_model() -> None:
    agent = Agent()

    @agent.tool_plain
    def tide_at(port: str) -> str:
        """Tells the tide at a port."""
        return f"high at {port}"

    first = agent.run_sync('[[{"calls": [["tide_at", {"port": "Brest"}]]}]]', model=model("SCRIPTED"))
    again = agent.run_sync(
        "Thanks.", model=model("REAL"), message_history=first.all_messages(), model_settings={"max_tokens": 8}
    )
    assert any(isinstance(part, ToolCallPart) for message in first.all_messages() for part in message.parts)
    assert again.output


def test_an_unknown_model_is_a_404_with_the_servers_words() -> None:
    with pytest.raises(ModelHTTPError, match="no-such-model") as caught:
        Agent(model("REAL", "no-such-model")).run_sync("Hi")
    assert caught.value.status_code == 404


def test_a_stream_that_fails_midway_raises() -> None:
    async def stream() -> None:
        cue = '[[{"say": "The tide is high at noon.", "error_after": 2}]]'
        async with Agent(model("SCRIPTED")).run_stream(cue) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pass

    with pytest.raises(Exception, match="engine"):
        asyncio.run(stream())
