"""What the cases about answers promise of themselves."""

import pytest

from harness.judged_case import cases_of
from tidegate.conformance.case import Case, Profile
from tidegate.conformance.checks.same_answer import is_like_repeated
from tidegate.conformance.clauses.answers import OPENAI_ANSWERS, TIDEGATE_ANSWERS
from tidegate.conformance.clauses.clause import CLAUSES

AREAS = ("chat", "completions", "stream", "stop", "unicode", "logprobs", "usage", "choices", "seeds")
CASES = cases_of(*AREAS)
MAX_ASKS = 5
MAX_TOKENS = 96


def _id(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_case_names_clauses_of_its_profile(case: Case) -> None:
    assert case.clauses
    assert set(case.clauses) <= CLAUSES.keys()
    if case.profile is Profile.OPENAI:
        assert case.clauses[0].startswith("openai:"), "what is no promise of OpenAI accuses nobody"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_case_is_bounded_and_checks_what_it_asks(case: Case) -> None:
    assert sum(ask.copies for ask in case.asks) <= MAX_ASKS
    for ask in case.asks:
        body = ask.body or {}
        limits = [body.get(name, 0) for name in ("max_tokens", "max_completion_tokens")]
        assert ask.raw is not None or ask.method == "GET" or max(limits) > 0 or body.get("echo")
        assert max(limits) <= MAX_TOKENS
        assert any(ask.name in expectation.on for expectation in case.expects)


def _compares_a_stream(case: Case) -> bool:
    return any(expectation.check is is_like_repeated and expectation.on[0] == "whole" for expectation in case.expects)


@pytest.mark.parametrize("case", [case for case in CASES if _compares_a_stream(case)], ids=_id)
def test_the_whole_answer_is_asked_again_in_other_words(case: Case) -> None:
    """Who answers to every byte of a request repeats itself, and is not accused of streaming something else."""
    whole, again, it = (next(ask for ask in case.asks if ask.name == name) for name in ("whole", "again", "it"))
    assert it.body == {**whole.body, "stream": True}
    assert again.body == {**whole.body, "stream": False} != whole.body


def test_there_are_enough_and_each_title_is_its_own() -> None:
    assert len(CASES) >= 60
    assert len({case.title for case in CASES}) == len(CASES)


def test_every_clause_about_answers_is_checked_by_a_case() -> None:
    named = {clause for case in CASES for clause in case.clauses}
    known = {f"openai:{name}" for name in OPENAI_ANSWERS} | {f"tidegate:{name}" for name in TIDEGATE_ANSWERS}
    assert known - named == set()
    for table in (OPENAI_ANSWERS, TIDEGATE_ANSWERS):
        assert list(table) == sorted(table)
