"""Every clause stands in one table, has a source, and is checked by a case; every case names clauses that exist."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tidegate.conformance.catalog import CASES
from tidegate.conformance.clauses import answers, openai, output, service, tidegate
from tidegate.conformance.clauses.clause import CLAUSES

TABLES: dict[str, tuple[Mapping[str, tuple[str, str]], ...]] = {
    "openai": (openai.OPENAI, answers.OPENAI_ANSWERS, output.OPENAI_OUTPUT, service.OPENAI_SERVICE),
    "tidegate": (tidegate.TIDEGATE, answers.TIDEGATE_ANSWERS, output.TIDEGATE_OUTPUT, service.TIDEGATE_SERVICE),
}


@pytest.mark.parametrize("prefix", TABLES)
def test_no_clause_stands_in_two_tables(prefix: str) -> None:
    counts = Counter(name for table in TABLES[prefix] for name in table)
    assert [name for name, count in counts.items() if count > 1] == []
    assert {f"{prefix}:{name}" for name in counts} == {name for name in CLAUSES if name.startswith(f"{prefix}:")}


def test_every_clause_has_words_and_a_source() -> None:
    assert [clause.id for clause in CLAUSES.values() if not clause.text.endswith(".") or not clause.source] == []


def test_cases_name_clauses_that_exist_and_every_clause_is_checked() -> None:
    named = {name for case in CASES for name in case.clauses}
    assert named == CLAUSES.keys()
    assert [case.id for case in CASES if not case.clauses] == []


def test_a_case_of_the_openai_profile_rests_on_a_public_clause() -> None:
    assert [
        case.id
        for case in CASES
        if case.profile.value == "openai" and not any(name.startswith("openai:") for name in case.clauses)
    ] == []


_OWN_CLAUSE: dict[str, tuple[str, ...]] = {
    "tidegate.conformance.checks.errors.is_refused": ("openai:errors.blame", "tidegate:errors.shape"),
    "tidegate.conformance.checks.invalid_value.is_refused": ("openai:errors.blame",),
    "tidegate.conformance.checks.sturdiness.is_answered": ("openai:errors.blame",),
    "tidegate.conformance.checks.constrained_text.keeps_schema": (
        "openai:response_format.schema",
        "tidegate:structured.enforced",
        "tidegate:structured.extension",
    ),
    "tidegate.conformance.checks.tool_calls.calls_are_made": (
        "openai:tools.choice_required",
        "openai:tools.choice_named",
        "openai:tools.choice_allowed",
        "openai:tools.custom",
        "tidegate:tools.enforced",
        "tidegate:tools.named_once",
    ),
}
"""A check to the clauses of which one is broken where it finds a fault."""


@pytest.mark.parametrize("check", _OWN_CLAUSE)
def test_a_case_names_the_clause_that_its_check_finds_broken(check: str) -> None:
    using = [
        case
        for case in CASES
        if any(
            f"{expectation.check.__module__}.{expectation.check.__name__}" == check
            and not set(expectation.args.get("allowed", ())) & {401, 403}
            for expectation in case.expects
        )
    ]
    assert using
    assert [case.id for case in using if not set(case.clauses) & set(_OWN_CLAUSE[check])] == []
