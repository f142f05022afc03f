"""JUnit, Markdown, the summary for a terminal, and which file gets which report."""

import re
from xml.etree import ElementTree

import pytest

from harness.made_report import HOSTILE, every_outcome, make_case, make_exchange, make_report, make_result, whole
from tidegate.conformance.case import Severity
from tidegate.conformance.reports.builder import build_document
from tidegate.conformance.reports.junit import render_junit
from tidegate.conformance.reports.markdown import MAX_MARKDOWN_BYTES, render_markdown
from tidegate.conformance.reports.renderers import RENDERERS
from tidegate.conformance.reports.terminal import MAX_FAILURES, render_summary
from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.verdict import Fault, Outcome, Verdict


def many_failures(number: int) -> RunReport:
    """Returns a report in which everything fails, the worst last, and as many cases told nothing."""
    results = []
    severities = list(Severity)
    for position in range(number):
        name = f"area.case_{position}"
        severity = severities[::-1][position * 4 // number]
        verdict = Verdict(name, Outcome.FAIL, tuple(Fault("wrong " * 90, ask="it") for _ in range(9)))
        exchange = make_exchange(whole(b"{}"), {"text": "x" * 500})
        results.append(make_result(make_case(name, severity=severity), verdict, {"it": [exchange]}))
        unsure = Verdict(f"other.case_{position}", Outcome.INCONCLUSIVE, reason="too short " * 30)
        results.append(make_result(make_case(f"other.case_{position}"), unsure))
    return make_report(*results)


def test_junit_has_a_suite_an_area_and_skips_what_told_nothing() -> None:
    root = ElementTree.fromstring(render_junit(build_document(every_outcome())))
    assert root.tag == "testsuites"
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "0",
        "skipped": "2",
    }
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("chat", "2"), ("tools", "2")]
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert list(cases["chat.object"]) == []
    assert cases["chat.object"].get("classname") == "conformance.chat"
    skipped = [cases[name].find("skipped") for name in ("tools.forced", "tools.none")]
    assert [element is not None for element in skipped] == [True, True]
    assert skipped[1] is not None
    assert skipped[1].get("message") == "inconclusive: the text is too short"


def test_junit_tells_a_failure_whole_and_spells_what_xml_cannot_hold() -> None:
    failure = ElementTree.fromstring(render_junit(build_document(every_outcome()))).find(".//failure")
    assert failure is not None
    assert failure.get("type") == "wrong data"
    assert failure.text is not None
    for wanted in ("Severity: wrong data", "Clause: A chat", "it, event 13: event says", "\\u0000", "curl -sSiN"):
        assert wanted in failure.text


def test_markdown_tells_areas_then_failures_worst_first() -> None:
    text = render_markdown(build_document(every_outcome()))
    assert text.startswith("## ✕ 1 of 2 cases fails\n")
    assert "| chat | 1 | 1 |  |  |\n| tools |  |  | 1 | 1 |\n| **all** | 1 | 1 | 1 | 1 |" in text
    assert "#### ✕ wrong data: What chat.stream says is so" in text
    assert "<details><summary>1 inconclusive</summary>\n\n- `tools.none`: `the text is too short`" in text
    document = build_document(many_failures(8))
    order = re.findall(r"#### ✕ ([^:]+):", render_markdown(document))
    assert order == [severity.value for severity in Severity for _ in range(2)]


def test_markdown_holds_a_servers_text_in_code_whatever_it_is() -> None:
    text = render_markdown(build_document(every_outcome()))
    line = next(line for line in text.splitlines() if line.startswith("- it, event 13"))
    assert line.startswith("- it, event 13: ``event says </script>")
    assert line.endswith("``")
    assert not [character for character in HOSTILE if character < " " and character in line]


@pytest.mark.parametrize("number", [1, 40, 400])
def test_markdown_is_bounded_and_says_what_is_missing(number: int) -> None:
    text = render_markdown(build_document(many_failures(number)))
    assert len(text.encode()) <= MAX_MARKDOWN_BYTES
    assert text.count("<details>") == text.count("</details>") == 1
    told = len(re.findall("^#### ", text, re.MULTILINE))
    if told < number:
        assert f"\n{number - told} more failures stand in the whole report.\n" in text
        assert re.search(r"^- and \d+ more$", text, re.MULTILINE)


def test_the_summary_for_a_terminal_holds_no_control_characters() -> None:
    text = render_summary(build_document(every_outcome()))
    assert not [character for character in text if character < " " and character != "\n"]
    lines = text.splitlines()
    assert "chat   ✓ 1 pass  ✕ 1 fail" in lines
    assert "tools                      – 1 unsupported  ? 1 inconclusive" in lines
    assert "? tools.none (0 of 3 runs told something): the text is too short" in lines
    assert lines[1].startswith("✕ chat.stream")
    assert text.endswith("1 of 2 cases fails; 1 unsupported, 1 inconclusive; 12.5 s\n")
    assert "✕ chat.stream (wrong data): What chat.stream says is so" in text


def test_the_summary_counts_the_failures_that_it_does_not_tell() -> None:
    text = render_summary(build_document(many_failures(30)))
    assert len(re.findall("^✕ ", text, re.MULTILINE)) == MAX_FAILURES
    assert "and 5 more failures; a report (--report FILE.html) holds them all" in text


def test_commands_for_a_narrow_terminal_stay_on_one_line() -> None:
    document = build_document(many_failures(2))
    lines = render_summary(document, width=80).splitlines()
    commands = [line for line in lines if "curl -sSiN" in line]
    assert commands == [f"    {case.by_hand[0]}" for case in document.cases if case.by_hand]
    assert max(len(line) for line in lines if line not in commands) <= 80


@pytest.mark.parametrize("suffix", RENDERERS)
def test_every_kind_of_report_is_of_the_same_run(suffix: str) -> None:
    text = RENDERERS[suffix](build_document(every_outcome()))
    assert all(case_id in text for case_id in ("chat.stream", "tools.none"))
