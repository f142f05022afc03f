"""What a difference means: near ties, tolerances, declared changes, versions of the contract; and how it is shown."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import Change, ChangesError, apply_changes, read_changes
from tidegate.conformance.diff.difference import Aspect, Difference, Meaning
from tidegate.conformance.diff.facts import Facts, TokenFact
from tidegate.conformance.diff.greedy import judge_texts
from tidegate.conformance.diff.logprobs import compare_logprobs
from tidegate.conformance.diff.report_html import MAX_VALUE, render_html
from tidegate.conformance.diff.report_json import diff_schema, render_json
from tidegate.conformance.diff.report_junit import render_junit
from tidegate.conformance.diff.report_lines import MAX_LISTED, write_lines
from tidegate.conformance.diff.report_markdown import render_markdown
from tidegate.conformance.diff.side import Side
from tidegate.conformance.probing.probe import Probed
from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.wire.target import Target


def _text(number: int, because: str = "greedy") -> Difference:
    return Difference(Aspect.TEXT, Meaning.VARIATION, f"a.{number}", "it", "choices[0]", "x", "y", because)


@pytest.mark.parametrize(
    ("num_differing", "num_greedy", "meaning"),
    [
        (1, 100, Meaning.VARIATION),
        (25, 100, Meaning.VARIATION),
        (26, 100, Meaning.REGRESSION),
        (3, 3, Meaning.VARIATION),
        (4, 4, Meaning.REGRESSION),
    ],
)
def test_greedy_text_may_differ_in_few_answers_only(num_differing: int, num_greedy: int, meaning: Meaning) -> None:
    found = judge_texts([_text(i) for i in range(num_differing)], num_greedy)
    assert {difference.meaning for difference in found} == {meaning}
    assert f"{num_differing} of {num_greedy}" in found[0].because


def test_sampled_text_may_always_differ() -> None:
    found = judge_texts([_text(i, "sampled") for i in range(50)], 50)
    assert {difference.meaning for difference in found} == {Meaning.VARIATION}


def _facts(*tokens: TokenFact, is_sampled: bool = False) -> Facts:
    none: dict[int, str] = {}
    return Facts(
        "",
        "WHOLE",
        200,
        "",
        frozenset(),
        None,
        {},
        (),
        frozenset(),
        none,
        {},
        {},
        {},
        {0: tokens},
        is_sampled=is_sampled,
    )


SEA = TokenFact("sea", -0.5, -1.0)


@pytest.mark.parametrize(
    ("old", "new", "meaning"),
    [
        (SEA, SEA, None),
        (SEA, replace(SEA, logprob=-0.75), Meaning.VARIATION),
        (SEA, replace(SEA, logprob=-0.76), Meaning.REGRESSION),
        (SEA, replace(SEA, token="lake"), Meaning.VARIATION),
        (replace(SEA, runner_up=-1.01), replace(SEA, token="lake"), Meaning.REGRESSION),
        (replace(SEA, runner_up=None), replace(SEA, token="lake"), Meaning.VARIATION),
        (replace(SEA, logprob=-9999.0), replace(SEA, logprob=-20.0), None),
    ],
    ids=["equal", "near", "far", "a near tie parts", "a clear choice parts", "nothing known parts", "a stand-in"],
)
def test_logprobs_of_one_token(old: TokenFact, new: TokenFact, meaning: Meaning | None) -> None:
    found = list(compare_logprobs([_facts(old)], [_facts(new)], 0.25))
    assert [row[3] for row in found] == ([] if meaning is None else [meaning])


def test_the_nearest_pair_of_runs_counts() -> None:
    far = _facts(replace(SEA, logprob=-3.0))
    assert list(compare_logprobs([far, _facts(SEA)], [_facts(SEA)], 0.25)) == []


def test_how_greedy_texts_part_decides_about_them() -> None:
    parts = Difference(
        Aspect.LOGPROBS, Meaning.REGRESSION, "a.0", "it", "choices[0] token 3 parts", "a", "b", "no near tie"
    )
    [_, text] = judge_texts([parts, _text(0)], 100)
    assert (text.meaning, text.because) == (Meaning.REGRESSION, "no near tie")


STATUS = Difference(Aspect.STATUS, Meaning.REGRESSION, "errors.x", "it", "", 400, 422, "clients")


@pytest.mark.parametrize(
    ("versions", "meaning"),
    [
        (((1, 0), (1, 1)), Meaning.INTENDED),
        (((1, 0), (1, 2)), Meaning.INTENDED),
        ((None, (1, 1)), Meaning.INTENDED),
        (((1, 1), (1, 1)), Meaning.REGRESSION),
        (((1, 0), (1, 0)), Meaning.REGRESSION),
        (((1, 1), (1, 0)), Meaning.REGRESSION),
        ((None, None), Meaning.REGRESSION),
    ],
)
def test_a_change_of_a_contract_version_holds_between_versions(
    versions: tuple[tuple[int, int] | None, tuple[int, int] | None], meaning: Meaning
) -> None:
    change = Change("422 from 1.1 on", case="errors.*", contract=(1, 1))
    assert apply_changes([STATUS], [change], versions).differences[0].meaning is meaning


@pytest.mark.parametrize(
    ("change", "covers"),
    [
        (Change("r", case="errors.*"), True),
        (Change("r", case="chat.*"), False),
        (Change("r", aspect=Aspect.STATUS), True),
        (Change("r", aspect=Aspect.SHAPE), False),
        (Change("r", old="400", new="422"), True),
        (Change("r", new="429"), False),
        (Change("r", where="usage"), False),
    ],
    ids=repr,
)
def test_what_a_change_covers(change: Change, covers: bool) -> None:
    declared = apply_changes([STATUS], [change], (None, None))
    assert (declared.differences[0].meaning is Meaning.INTENDED) is covers
    assert bool(declared.unseen) is not covers


def test_an_improvement_stays_one_when_it_was_declared() -> None:
    mended = replace(STATUS, meaning=Meaning.IMPROVEMENT)
    assert apply_changes([mended], [Change("r", case="errors.*")], (None, None)).differences == [mended]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "not TOML"),
        ("a = 1", "a: not known"),
        ("change = 1", "change: must be tables"),
        ("change = [1]", "change 1: must be a table"),
        ('[[change]]\ncase = "a"', "change 1.reason: is missing"),
        ('[[change]]\nreason = "r"', "change 1: names nothing"),
        ('[[change]]\nreason = "r"\ncases = "a"', "change 1.cases: not known"),
        ('[[change]]\nreason = "r"\naspect = "colour"', "change 1.aspect: 'colour' is not one of verdict"),
        ('[[change]]\nreason = "r"\ncontract = "one"', "change 1.contract: 'one' is not a version"),
    ],
)
def test_a_bad_file_of_changes_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(ChangesError) as refusal:
        read_changes(text)
    assert says in str(refusal.value)


SCHEMA = Path(__file__).parents[2] / "docs" / "conformance" / "diff.schema.json"
HOSTILE = '</script><img src=x onerror=alert(1)>|`*\x00\x1b[31m\u202e"'


def _comparison(*differences: Difference) -> Comparison:
    target = Target(base_url="http://127.0.0.1:1/v1")
    report = RunReport(target, Probed("m", frozenset(), {}, False, False), (), 0.0, "2026-01-01T00:00:00Z")
    return Comparison(
        Side("old", [report]), Side("new", [report]), differences, ["a.gone"], ["a.new"], [Change(HOSTILE)]
    )


def test_reports_show_everything_and_trust_nothing() -> None:
    hostile = Difference(Aspect.TEXT, Meaning.REGRESSION, "a.b", "it", "choices[0]", HOSTILE, "x" * 5000, HOSTILE)
    comparison = _comparison(STATUS, hostile, replace(STATUS, meaning=Meaning.ADDITION))
    lines = "\n".join(write_lines(comparison))
    assert "regression (2)" in lines
    assert "400" in lines
    assert "a.gone" in lines
    html = render_html(comparison)
    assert "<img" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    markdown = render_markdown(comparison)
    assert "<img" not in markdown.replace("`</script><img", "")
    document = json.loads(render_json(comparison))
    jsonschema_rs.validate(json.loads(SCHEMA.read_text("utf-8")), document)
    assert {name: count for name, count in document["counts"].items() if count} == {
        "regression": 2,
        "compatible addition": 1,
    }
    assert document["differences"][1]["old"] == HOSTILE
    suite = ElementTree.fromstring(render_junit(comparison))
    assert suite.get("tests") == "0"


def test_thousands_of_differences_are_counted_and_long_values_cut() -> None:
    many = _comparison(*(replace(STATUS, case_id=f"a.case_{number}") for number in range(300)))
    lines = list(write_lines(many))
    assert sum(line.startswith("  status in a.case_") for line in lines) == MAX_LISTED
    assert "  and 200 more; a report (--report FILE.html) holds them all" in lines
    page = render_html(many)
    assert page.count('<details class="group">') == 300, "listed, and closed"
    one = render_html(_comparison(replace(STATUS, old="x" * (MAX_VALUE + 7))))
    assert one.count('<details class="group" open>') == 1
    assert "… 7 more characters" in one


def test_the_published_schema_of_a_comparison_is_up_to_date() -> None:
    assert SCHEMA.read_text("utf-8") == diff_schema(), "run: python -m tidegate.conformance.diff.report_json"


def test_a_comparison_without_differences_says_so() -> None:
    assert list(write_lines(replace(_comparison(), unseen=[])))[-1] == "no difference in 0 cases"
