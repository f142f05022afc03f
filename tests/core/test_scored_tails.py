"""Prompts of which only the last tokens are scored: what stands before may be in memory already, and is no row."""

import msgspec
import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.testing.core_driver import CoreDriver, RecordingBackend
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

BLOCK = 4
QUESTION = "a question of forty-two characters, is it?"
ANSWERS = ("yes", "no", "perhaps")


def _driver(limits: StepLimits, *, max_step_tokens: int, num_blocks: int = 256) -> tuple[CoreDriver, RecordingBackend]:
    shape = SimulatedShape(
        max_model_len=128,
        num_blocks=num_blocks,
        block_tokens=BLOCK,
        max_sequences=8,
        max_step_tokens=max_step_tokens,
    )
    backend = RecordingBackend(SimulatedBackend(SimulatedModel.HISTORY, shape))
    return CoreDriver(backend, PlainChooser(), limits=limits), backend


def make_scored(answer: str, question: str = QUESTION) -> InferenceRequest:
    return make_request(answer, question + answer, max_tokens=0, num_prompt_logprobs=0, first_scored=len(question))


def _scored(answer: str, **fields: object) -> InferenceRequest:
    return msgspec.structs.replace(make_scored(answer), **fields)


def _scores(*requests: InferenceRequest, limits: StepLimits | None = None, max_step_tokens: int = 16) -> CoreDriver:
    driver, _ = _driver(limits or StepLimits(), max_step_tokens=max_step_tokens)
    driver.add(*requests)
    driver.run()
    driver.assert_at_rest()
    return driver


def _whole(answer: str) -> list[object]:
    """All entries of a prompt of which every token is scored."""
    return list(_scores(_scored(answer, first_scored=0)).records[answer, 0].prompt_logprobs)


@pytest.mark.parametrize("max_scored_rows", [1, 2, 128])
@pytest.mark.parametrize("max_step_tokens", [8, 64])
def test_the_last_tokens_are_scored_as_among_all(max_scored_rows: int, max_step_tokens: int) -> None:
    limits = StepLimits(max_scored_rows=max_scored_rows)
    driver = _scores(*map(_scored, ANSWERS), limits=limits, max_step_tokens=max_step_tokens)
    for answer in ANSWERS:
        record = driver.records[answer, 0]
        assert record.prompt_logprobs == _whole(answer)[len(QUESTION) :]
        assert (len(record.prompt_logprobs), record.finish) == (len(answer), EngineFinish.LENGTH)


@pytest.mark.parametrize("first_scored", [1, 2, len(QUESTION) - 1, len(QUESTION) + 2, len(QUESTION) + 3])
def test_entries_begin_at_the_position_that_was_asked_for(first_scored: int) -> None:
    record = _scores(_scored("yes", first_scored=first_scored)).records["yes", 0]
    assert record.prompt_logprobs == _whole("yes")[first_scored:]


@pytest.mark.parametrize("length", range(len(QUESTION) - BLOCK + 1, len(QUESTION) + 1))
def test_answers_to_one_question_read_it_once(length: int) -> None:
    """All but the token whose logits score the first of the answer."""
    asked = {answer: make_scored(answer, QUESTION[:length]) for answer in ANSWERS}
    driver = _scores(*asked.values())
    in_memory = length - 1
    num_rest = sum(length + len(answer) - in_memory for answer in ANSWERS)
    assert driver.core.statistics().num_prefill_tokens == in_memory + num_rest
    assert [driver.records[answer, 0].num_cached_tokens for answer in ANSWERS] == [0, in_memory, in_memory]
    for answer, request in asked.items():
        alone = _scores(msgspec.structs.replace(request, first_scored=0)).records[answer, 0]
        assert driver.records[answer, 0].prompt_logprobs == alone.prompt_logprobs[length:]


def test_nobody_waits_for_what_it_could_not_take_over() -> None:
    driver, backend = _driver(StepLimits(), max_step_tokens=128)
    driver.add(_scored("yes"), _scored("no", first_scored=2))
    driver.step()
    assert len(backend.plans[0].prefill) == 2


def test_without_a_prefix_cache_each_answer_reads_the_question() -> None:
    driver = _scores(*map(_scored, ANSWERS), limits=StepLimits(has_prefix_cache=False))
    assert driver.core.statistics().num_prefill_tokens == sum(len(QUESTION) + len(answer) for answer in ANSWERS)


def test_other_salts_share_nothing() -> None:
    driver = _scores(_scored("yes", cache_salt=b"a"), _scored("no", cache_salt=b"b"))
    assert [driver.records[answer, 0].num_cached_tokens for answer in ("yes", "no")] == [0, 0]


def test_where_all_tokens_are_scored_nothing_is_taken_from_memory() -> None:
    driver = _scores(_scored("yes"), _scored("no", first_scored=0))
    assert driver.records["no", 0].num_cached_tokens == 0
    assert driver.records["no", 0].prompt_logprobs == _whole("no")


def test_only_rows_that_score_are_asked_for() -> None:
    driver, backend = _driver(StepLimits(), max_step_tokens=16)
    driver.add(_scored("yes"))
    driver.run()
    parts = [part for plan in backend.plans for part in plan.prefill]
    rows = [part.start + i for part in parts if part.wants_all for i in range(part.num_unwanted, len(part.token_ids))]
    assert rows == list(range(len(QUESTION) - 1, len(QUESTION) + 3))


def test_unscored_tokens_take_no_scored_rows_from_others() -> None:
    """Two prompts with one scored row between them: the step is filled all the same."""
    driver, backend = _driver(StepLimits(max_scored_rows=1), max_step_tokens=64)
    driver.add(_scored("yes"), make_request("other", "b" * 20, max_tokens=0, num_prompt_logprobs=0, first_scored=19))
    driver.step()
    assert [len(part.token_ids) for part in backend.plans[0].prefill] == [len(QUESTION), 18]


def test_a_preempted_prompt_takes_up_what_others_have_and_gives_no_entry_twice() -> None:
    driver, _ = _driver(StepLimits(), max_step_tokens=8, num_blocks=20)
    driver.add(_scored("yes"))
    driver.step()
    driver.step()
    driver.hold("yes", held=True)
    driver.add(make_request("large", "c" * 70, max_tokens=1))
    driver.run()
    assert driver.core.statistics().num_preemptions == 1
    driver.hold("yes", held=False)
    driver.run()
    driver.assert_at_rest()
    assert driver.records["yes", 0].prompt_logprobs == _whole("yes")[len(QUESTION) :]
