"""From test reports to the table of clients (scripts/client_suites)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "client_suites"))

import clients
from outcomes import CaseOutcome, Verdict, judge, read_outcomes, table
from snippets import snippets_of

sys.path.pop(0)

ROOT = Path(__file__).parents[2]
PYTEST_REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" tests="4">
<testcase classname="a" name="test_good[x]" time="0.1"/>
<testcase classname="a" name="test_bad"><failure message="AssertionError: one&#10;  two">trace</failure></testcase>
<testcase classname="a" name="test_broken"><error message="fixture">trace</error></testcase>
<testcase classname="a" name="test_left"><skipped message="not asked for"/></testcase>
</testsuite></testsuites>"""
NODE_REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites>
<testcase name="it answers" time="0.1" classname="test"/>
<testcase name="it stops" time="0.1" classname="test" failure="1 !== 2">
<failure type="testCodeFailure" message="1 !== 2">trace</failure></testcase></testsuites>"""


def test_reports_of_pytest_and_node_are_read() -> None:
    assert read_outcomes(PYTEST_REPORT) == [
        CaseOutcome("test_good[x]", None),
        CaseOutcome("test_bad", "AssertionError: one two"),
        CaseOutcome("test_broken", "fixture"),
        CaseOutcome("test_left", None, is_skipped=True),
    ]
    assert read_outcomes(NODE_REPORT) == [CaseOutcome("it answers", None), CaseOutcome("it stops", "1 !== 2")]


def test_only_what_is_listed_may_fail_and_what_is_listed_must() -> None:
    outcomes = [
        CaseOutcome("test_a[1]", "refused"),
        CaseOutcome("test_a[2]", None),
        CaseOutcome("test_b", "broken"),
        CaseOutcome("test_c", None),
        CaseOutcome("test_d", None, is_skipped=True),
    ]
    verdict = judge("one", "1.0", outcomes, {"test_a*": "not by contract"})
    assert verdict.excused == (("test_a[1]", "not by contract"),)
    assert [name for name, _ in verdict.failed] == ["test_a[2]", "test_b"]
    assert (verdict.passed, verdict.skipped) == (("test_c",), ("test_d",))
    assert not verdict.is_good


@pytest.mark.parametrize(
    ("verdict", "is_good"),
    [
        (Verdict("a", "1", passed=("x",), excused=(("y", "z"),)), True),
        (Verdict("a", "1", excused=(("y", "z"),)), False),
        (Verdict("a", "1"), False),
        (Verdict("a", "1", passed=("x",), failed=(("y", "z"),)), False),
        (Verdict("a", "1", passed=("x",), trouble="no index"), False),
    ],
    ids=["passes", "only exceptions", "nothing ran", "a failure", "trouble"],
)
def test_a_client_is_good_when_something_ran_and_nothing_failed(verdict: Verdict, is_good: bool) -> None:
    assert verdict.is_good is is_good


def test_the_table_names_what_failed_and_what_could_not_run() -> None:
    lines = table(
        [Verdict("one", "1.0", ("a",), (("b", "why"),), (("c", "reason"),)), Verdict("two", "-", trouble="no index")]
    ).splitlines()
    assert lines[2:4] == ["| one | 1.0 | 1 | 1 | 1 | 0 |", "| two | - | - | could not run | - | - |"]
    assert lines[5:] == ["one: FAILED b: why", "one: expected c: reason", "two: COULD NOT RUN: no index"]


def test_every_client_has_its_scenario_its_lock_and_its_place_in_the_docs() -> None:
    page = (ROOT / "docs/clients.md").read_text("utf-8")
    for client in clients.CLIENTS:
        assert (ROOT / "scripts/client_suites" / client.scenario).is_file()
        assert client.is_node or (ROOT / f"requirements/clients/{client.name}.lock").is_file()
        assert f"\n| {client.name} |" in page


def test_every_client_has_a_snippet_that_is_aimed_at_a_server() -> None:
    found = snippets_of((ROOT / "docs/clients.md").read_text("utf-8"), "http://127.0.0.1:1/v1", "some-model")
    assert list(found) == [client.name for client in clients.CLIENTS]
    for snippet in found.values():
        assert "http://127.0.0.1:1/v1" in snippet.text
        assert "some-model" in snippet.text
        assert "127.0.0.1:8000" not in snippet.text


def test_clients_are_chosen_by_name_and_unknown_names_are_refused() -> None:
    assert clients.chosen("") == clients.CLIENTS
    assert [client.name for client in clients.chosen("llm, instructor")] == ["llm", "instructor"]
    with pytest.raises(SystemExit, match=r"no such client: lmm; there are langchain, .*"):
        clients.chosen("lmm")
