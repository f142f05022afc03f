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
