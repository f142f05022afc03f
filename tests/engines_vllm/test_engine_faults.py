"""What vLLM's exceptions mean, by the names of their classes."""

import pytest

from harness import llm_stand_in as stand_in
from tidegate.engines.remote.carrier import Ending
from tidegate.engines.remote.remote_error import RETRY_AFTER_S
from tidegate.engines.vllm.engine_faults import MAX_REASON_CHARS, describe, outcome_of
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, InternalError, InvalidValue

TABLE: dict[str, tuple[Exception, Ending, type[Exception]]] = {
    "the engine is dead": (stand_in.EngineDeadError("see above"), Ending.LOST, EngineLost),
    "a queue of its own is full": (stand_in.QueueOverflowError(), Ending.REFUSED, EngineUnavailable),
    "a request that may be sent again": (stand_in.RetryableRequestError(), Ending.REFUSED, EngineUnavailable),
    "a field": (stand_in.VLLMValidationError("logprobs"), Ending.REFUSED, InvalidValue),
    "this request": (stand_in.EngineGenerateError(), Ending.REFUSED, EngineRefused),
    "another of its server's": (stand_in.VLLMServerError("x"), Ending.REFUSED, EngineRefused),
    "anything": (ValueError("secret of another caller"), Ending.REFUSED, InternalError),
}


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE)
def test_an_exception_has_one_meaning_and_its_words_stay_here(
    case: tuple[Exception, Ending, type[Exception]],
) -> None:
    raised, ending, told = case
    outcome = outcome_of(raised)
    assert outcome.ending is ending
    assert type(outcome.error) is told
    assert str(raised) == "" or str(raised) not in str(outcome.error)
    assert type(raised).__name__ in outcome.reason


def test_the_cause_of_an_empty_exception_is_told_to_operators() -> None:
    error = stand_in.EngineGenerateError()
    error.__cause__ = OverflowError("Integer value\nout of range")
    assert describe(error) == "EngineGenerateError from OverflowError: Integer value out of range"


def test_a_full_engine_says_when_to_come_again() -> None:
    error = outcome_of(stand_in.QueueOverflowError()).error
    assert error is not None
    assert error.retry_after_s == RETRY_AFTER_S


def test_no_more_than_four_causes_are_told() -> None:
    last: Exception = ValueError("0")
    for number in range(1, 7):
        error = ValueError(str(number))
        error.__cause__, last = last, error
    assert describe(last) == " from ".join(f"ValueError: {number}" for number in (6, 5, 4, 3))


def test_what_goes_to_the_log_is_bounded() -> None:
    assert len(describe(ValueError("x" * 10_000))) == MAX_REASON_CHARS
