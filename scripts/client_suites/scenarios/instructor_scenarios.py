"""instructor: typed answers over tools, JSON schema and JSON mode, whole and in parts."""

import asyncio
import os
from collections.abc import Iterable
from typing import Literal

import instructor
import pytest
from instructor.core.exceptions import InstructorRetryException
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, ConfigDict, Field, field_validator

REAL, SCRIPTED = os.environ["REAL_URL"], os.environ["SCRIPTED_URL"]
MODELS = {REAL: os.environ["REAL_MODEL"], SCRIPTED: os.environ["SCRIPTED_MODEL"]}
PATIENCE_S = 120
MODES = [instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA]
ASK = [{"role": "user", "content": "How high is the tide of 7 metres in 'Brest'?"}]


class Tide(BaseModel):
    """The tide at a port."""

    model_config = ConfigDict(extra="forbid")
    port: Literal["Brest", "Dover", "Saint-Malo"]
    height_m: int = Field(ge=0, le=20)
    is_rising: bool


class Voyage(BaseModel):
    """A voyage with its calls."""

    model_config = ConfigDict(extra="forbid")
    ship: str = Field(max_length=20)
    calls: list[Tide] = Field(min_length=1, max_length=2)


def typed(url: str, mode: instructor.Mode) -> instructor.Instructor:
    return instructor.from_openai(OpenAI(base_url=url, api_key="none", max_retries=0, timeout=PATIENCE_S), mode=mode)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("url", [REAL, SCRIPTED], ids=["real_model", "scripted"])
def test_an_answer_has_the_type_that_was_asked_for(url: str, mode: instructor.Mode) -> None:
    tide, raw = typed(url, mode).chat.completions.create_with_completion(
        model=MODELS[url], messages=ASK, response_model=Tide, max_retries=0, temperature=0, max_tokens=200
    )
    assert isinstance(tide, Tide)
    assert raw.usage.total_tokens == raw.usage.prompt_tokens + raw.usage.completion_tokens


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("url", [REAL, SCRIPTED], ids=["real_model", "scripted"])
def test_nested_types_come_back_whole(url: str, mode: instructor.Mode) -> None:
    voyage = typed(url, mode).chat.completions.create(
        model=MODELS[url], messages=ASK, response_model=Voyage, max_retries=0, temperature=0, max_tokens=200
    )
    assert 1 <= len(voyage.calls) <= 2


def test_json_mode_follows_the_schema_in_the_prompt() -> None:
    tide = typed(SCRIPTED, instructor.Mode.JSON).chat.completions.create(
        model=MODELS[SCRIPTED], messages=ASK, response_model=Tide, max_retries=0
    )
    assert (tide.port, tide.height_m) == ("Brest", 7)


def test_json_mode_of_the_real_model_is_json() -> None:
    answer = OpenAI(base_url=REAL, api_key="none", timeout=PATIENCE_S).chat.completions.create(
        model=MODELS[REAL], messages=ASK, response_format={"type": "json_object"}, max_tokens=200, temperature=0
    )
    assert answer.choices[0].message.content.lstrip().startswith("{")


def test_json_in_a_code_block_is_read() -> None:
    cue = '[[{"say": "```json\\n{\\"port\\": \\"Dover\\", \\"height_m\\": 3, \\"is_rising\\": false}\\n```"}]]'
    tide = typed(SCRIPTED, instructor.Mode.MD_JSON).chat.completions.create(
        model=MODELS[SCRIPTED], messages=[{"role": "user", "content": cue}], response_model=Tide, max_retries=0
    )
    assert (tide.port, tide.height_m, tide.is_rising) == ("Dover", 3, False)


@pytest.mark.parametrize("mode", [*MODES, instructor.Mode.JSON], ids=lambda mode: mode.value)
def test_a_partial_answer_grows_while_it_streams(mode: instructor.Mode) -> None:
    parts = list(
        typed(SCRIPTED, mode).chat.completions.create_partial(
            model=MODELS[SCRIPTED], messages=ASK, response_model=Voyage, max_retries=0
        )
    )
    assert len(parts) > 1
    assert parts[-1].ship == "Brest"
    assert len(parts[-1].calls) == 1


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA], ids=lambda mode: mode.value)
def test_a_partial_answer_of_the_real_model_ends_whole(mode: instructor.Mode) -> None:
    *_, last = typed(REAL, mode).chat.completions.create_partial(
        model=MODELS[REAL], messages=ASK, response_model=Tide, max_retries=0, temperature=0, max_tokens=200
    )
    assert last.port is not None
    assert last.is_rising is not None


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.JSON], ids=lambda mode: mode.value)
def test_an_iterable_answer_streams_its_items(mode: instructor.Mode) -> None:
    tides = list(
        typed(SCRIPTED, mode).chat.completions.create_iterable(
            model=MODELS[SCRIPTED], messages=ASK, response_model=Tide, max_retries=0
        )
    )
    assert [tide.port for tide in tides] == ["Brest"]


def test_parallel_tools_come_back_one_by_one() -> None:
    calls = '[["Tide", {"port": "Brest", "height_m": 1, "is_rising": true}], ["Ship", {"name": "Ida"}]]'
    found = typed(SCRIPTED, instructor.Mode.PARALLEL_TOOLS).chat.completions.create(
        model=MODELS[SCRIPTED],
        messages=[{"role": "user", "content": f'[[{{"calls": {calls}}}]]'}],
        response_model=Iterable[Tide | Ship],
    )
    assert [type(item).__name__ for item in found] == ["Tide", "Ship"]


class Ship(BaseModel):
    """A ship."""

    name: str


class HighTide(Tide):
    """A tide that no answer satisfies."""

    @field_validator("height_m")
    @classmethod
    def _must_be_high(cls, value: int) -> int:
        raise ValueError(f"{value} is not high")


@pytest.mark.parametrize("mode", [*MODES, instructor.Mode.JSON], ids=lambda mode: mode.value)
def test_a_second_try_carries_the_first_answer_and_its_fault(mode: instructor.Mode) -> None:
    with pytest.raises(InstructorRetryException, match="is not high") as caught:
        typed(SCRIPTED, mode).chat.completions.create(
            model=MODELS[SCRIPTED], messages=ASK, response_model=HighTide, max_retries=2
        )
    assert caught.value.n_attempts > 1


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_the_asynchronous_client_answers_too(mode: instructor.Mode) -> None:
    client = instructor.from_openai(
        AsyncOpenAI(base_url=SCRIPTED, api_key="none", max_retries=0, timeout=PATIENCE_S), mode=mode
    )
    asking = client.chat.completions.create(model=MODELS[SCRIPTED], messages=ASK, response_model=Tide, max_retries=0)
    tide = asyncio.run(asking)
    assert (tide.port, tide.height_m) == ("Brest", 7)


def test_a_refusal_of_the_server_reaches_the_caller() -> None:
    with pytest.raises(InstructorRetryException, match="no-such-model"):
        typed(REAL, instructor.Mode.TOOLS).chat.completions.create(
            model="no-such-model", messages=ASK, response_model=Tide, max_retries=0
        )
