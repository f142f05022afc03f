"""LlamaIndex over `OpenAILike`: chat, completion, streams, tool calling, structured prediction."""

import asyncio
import os
from typing import Literal

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from openai import APIError, NotFoundError
from pydantic import BaseModel, ConfigDict, Field

PLAIN = "The tide is high at noon, and again at midnight."
ASK = [ChatMessage(role=MessageRole.USER, content="When is the tide high?")]


class Tide(BaseModel):
    """The tide at a port."""

    model_config = ConfigDict(extra="forbid")
    port: Literal["Brest", "Dover", "Saint-Malo"]
    height_m: int = Field(ge=0, le=20)
    is_rising: bool


def tide_at(port: Literal["Brest", "Dover"], day: int) -> str:
    """Tells the tide at a port."""
    return f"high at {port} on day {day}"


TOOL = FunctionTool.from_defaults(tide_at)


def model(kind: str, name: str | None = None, **options: object) -> OpenAILike:
    return OpenAILike(
        model=name or os.environ[f"{kind}_MODEL"],
        api_base=os.environ[f"{kind}_URL"],
        api_key="none",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        timeout=120,
        **options,
    )


def test_chat_answers_in_text_with_usage() -> None:
    answer = model("SCRIPTED").chat(ASK)
    assert answer.message.content == PLAIN
    assert answer.raw.usage.completion_tokens == 12


def test_chat_streams_in_parts() -> None:
    parts = [part.delta for part in model("SCRIPTED").stream_chat(ASK)]
    assert len(parts) > 3
    assert "".join(part or "" for part in parts) == PLAIN


def test_the_asynchronous_stream_gives_the_same() -> None:
    async def stream() -> str:
        return "".join([part.delta or "" async for part in await model("SCRIPTED").astream_chat(ASK)])

    assert asyncio.run(stream()) == PLAIN


def test_the_real_model_completes_and_streams_the_same_text() -> None:
    real = model("REAL", temperature=0.0, max_tokens=12)
    whole = real.chat(ASK).message.content
    assert whole == "".join(part.delta or "" for part in real.stream_chat(ASK))


def test_the_completions_route_is_used_when_the_model_is_no_chat_model() -> None:
    plain = OpenAILike(
        model=os.environ["REAL_MODEL"], api_base=os.environ["REAL_URL"], api_key="none", temperature=0.0, max_tokens=8
    )
    whole = plain.complete("The sea is").text
    assert whole
    assert whole == "".join(part.delta or "" for part in plain.stream_complete("The sea is"))


def test_a_tool_is_called_and_run() -> None:
    answer = model("SCRIPTED").predict_and_call([TOOL], '[[{"calls": [["tide_at", {"port": "Brest", "day": 2}]]}]]')
    assert str(answer) == "high at Brest on day 2"


@pytest.mark.parametrize("kind", ["REAL", "SCRIPTED"])
def test_a_required_tool_is_called(kind: str) -> None:
    asked = model(kind, temperature=0.0, max_tokens=100)
    answer = asked.chat_with_tools([TOOL], "The tide at 'Brest'?", tool_required=True)
    calls = asked.get_tool_calls_from_response(answer)
    assert [call.tool_name for call in calls] == ["tide_at"]
    assert calls[0].tool_kwargs["port"] in ("Brest", "Dover")


def test_a_streamed_call_comes_together() -> None:
    asked = model("SCRIPTED")
    cue = '[[{"calls": [["tide_at", {"port": "Brest", "day": 2}], ["tide_at", {"port": "Dover", "day": 3}]]}]]'
    *_, last = asked.stream_chat_with_tools([TOOL], cue, allow_parallel_tool_calls=True)
    calls = asked.get_tool_calls_from_response(last)
    assert [call.tool_kwargs for call in calls] == [{"port": "Brest", "day": 2}, {"port": "Dover", "day": 3}]


def test_a_tool_answer_is_taken_back() -> None:
    asked = model("SCRIPTED")
    question = ChatMessage(role=MessageRole.USER, content='[[{"calls": [["tide_at", {"port": "Brest", "day": 2}]]}]]')
    answer = asked.chat_with_tools([TOOL], chat_history=[question])
    call = asked.get_tool_calls_from_response(answer)[0]
    told = ChatMessage(role=MessageRole.TOOL, content="high", additional_kwargs={"tool_call_id": call.tool_id})
    last = asked.chat_with_tools([TOOL], chat_history=[question, answer.message, told])
    assert last.message.content == "The tools said: high"


@pytest.mark.parametrize("kind", ["REAL", "SCRIPTED"])
def test_structured_prediction_keeps_the_type(kind: str) -> None:
    prompt = PromptTemplate("The tide of 7 metres at '{port}'?")
    tide = model(kind, temperature=0.0, max_tokens=200).structured_predict(Tide, prompt, port="Brest")
    assert isinstance(tide, Tide)


@pytest.mark.parametrize("kind", ["REAL", "SCRIPTED"])
def test_a_structured_model_answers_over_the_native_schema(kind: str) -> None:
    native = model(kind, temperature=0.0, max_tokens=200, should_use_structured_outputs=True)
    answer = native.as_structured_llm(Tide).chat(ASK)
    assert isinstance(answer.raw, Tide)


def test_structured_prediction_streams_and_ends_whole() -> None:
    prompt = PromptTemplate("The tide of 7 metres at '{port}'?")
    *_, last = model("SCRIPTED").stream_structured_predict(Tide, prompt, port="Brest")
    assert (last.port, last.height_m, last.is_rising) == ("Brest", 7, True)


def test_an_unknown_model_is_a_not_found_error() -> None:
    with pytest.raises(NotFoundError, match="no-such-model"):
        model("REAL", "no-such-model").chat(ASK)


def test_a_stream_that_fails_midway_raises() -> None:
    cue = ChatMessage(role=MessageRole.USER, content='[[{"say": "The tide is high.", "error_after": 2}]]')
    with pytest.raises(APIError):
        list(model("SCRIPTED").stream_chat([cue]))
