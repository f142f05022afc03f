"""What the engine says of a prompt that is only read: a sound vector, a likelihood, or nothing that goes out."""

import math
import struct

import pytest

from tidegate.errors import InternalError
from tidegate.inference.event import PromptLikelihood, PromptVector
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.serving.read_choice import LikelihoodChoice, VectorChoice


def pooled(data: bytes | None, finish: EngineFinish | None = EngineFinish.POOLED) -> TokenDelta:
    return TokenDelta("r", 0, [], finish, num_prompt_tokens=3, pooled=data)


def scored(*values: float | None, finish: EngineFinish | None = None) -> TokenDelta:
    logprobs = [None if value is None else TokenLogprob(1, value) for value in values]
    return TokenDelta("r", 0, [], finish, prompt_logprobs=logprobs or None)


VECTOR = struct.pack("<3f", 1.5, -2.0, 0.25)


def test_a_vector_is_handed_on_as_it_came_and_ends_the_choice() -> None:
    choice = VectorChoice()
    assert (choice.feed(pooled(None, None)), choice.is_finished, choice.outcome) == ([], False, None)
    assert choice.feed(pooled(VECTOR)) == [PromptVector(VECTOR)]
    assert (choice.is_finished, choice.outcome, choice.num_tokens) == (True, "read", 0)
    assert choice.feed(pooled(VECTOR)) == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_vector_with_a_number_that_is_not_finite_never_goes_out(number: float) -> None:
    choice = VectorChoice()
    with pytest.raises(InternalError):
        choice.feed(pooled(struct.pack("<3f", 0.0, number, 1.0)))
    assert not choice.is_finished


@pytest.mark.parametrize("data", [None, b"", VECTOR[:-1]], ids=["none", "empty", "cut"])
def test_bytes_that_are_no_vector_never_go_out(data: bytes | None) -> None:
    with pytest.raises(InternalError):
        VectorChoice().feed(pooled(data))


@pytest.mark.parametrize("finish", [EngineFinish.ABORTED, EngineFinish.FAILED, EngineFinish.LENGTH])
def test_another_end_is_no_answer(finish: EngineFinish) -> None:
    choice = VectorChoice()
    assert (choice.feed(pooled(None, finish)), choice.is_finished) == ([], False)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3)], ids=str)
def test_only_the_last_tokens_count_however_they_arrive(cuts: tuple[int, ...]) -> None:
    values = [None, -9.0, -0.5, -0.25]
    choice = LikelihoodChoice(2)
    for start, end in zip((0, *cuts), (*cuts, len(values)), strict=True):
        assert choice.feed(scored(*values[start:end])) == []
    assert choice.feed(scored(finish=EngineFinish.LENGTH)) == [PromptLikelihood(-0.75)]
    assert choice.outcome == "read"
    assert choice.feed(scored(-1.0, finish=EngineFinish.LENGTH)) == [], "it has been told"


def test_a_token_that_cannot_be_has_the_contracts_number() -> None:
    choice = LikelihoodChoice(1)
    assert choice.feed(scored(None, -math.inf, finish=EngineFinish.LENGTH)) == [PromptLikelihood(-9999.0)]


@pytest.mark.parametrize("values", [(), (-1.0,), (None, -1.0), (-1.0, math.nan)], ids=str)
def test_scores_that_are_missing_or_no_numbers_never_go_out(values: tuple[float | None, ...]) -> None:
    with pytest.raises(InternalError):
        LikelihoodChoice(2).feed(scored(*values, finish=EngineFinish.LENGTH))
