"""Reports: one document, told alike by all; JSON by its published schema; nothing of a server's becomes markup."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from harness.load_samples import done, failed
from tidegate.loadtest.comparison import MIN_PAIRS
from tidegate.loadtest.length import Length
from tidegate.loadtest.orders import Bounds, Load, Orders
from tidegate.loadtest.report import Findings, Machine, Report, build_report
from tidegate.loadtest.reports.html import render_html
from tidegate.loadtest.reports.json_report import report_schema
from tidegate.loadtest.reports.markdown import render_markdown
from tidegate.loadtest.reports.plots import draw_plots
from tidegate.loadtest.reports.renderers import RENDERERS, write_plots
from tidegate.loadtest.reports.terminal import render_terminal
from tidegate.loadtest.requirement import read_requirement
from tidegate.loadtest.run_summary import Taken
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.slo import Slo
from tidegate.loadtest.target import Target
from tidegate.loadtest.workloads import Kind, Workload
from tidegate.reporting.json_document import render_json
from tidegate.reporting.report_file import ReportError, write_reports

SCHEMA = Path(__file__).parents[2] / "docs" / "bench.report.schema.json"
HOSTILE = "<script>alert(1)</script>\x00\x1b[2J\u202e|`*_"


def taken(speed: float, number: int, *more: Sample, **changes: Any) -> Taken:
    samples = [done(0.1 * n, 0.1 * n + speed, 0.1 * n + 2 * speed, is_counted_by_server=True) for n in range(8)]
    for each in samples[::4]:
        each.group = "long"
    return Taken(number=number, begun_at=0.0, ended_at=10.0, samples=[*samples, *more], **changes)


def report_of(*servers: list[Taken], **changes: Any) -> Report:
    workload = Workload(
        kind=Kind.MIXED, seed=1, input=Length(8, 16), output=Length(8, 8), prefix_tokens=8, long_input=Length(9, 9)
    )
    labels = ("first", "second")[: len(servers)]
    values: dict[str, Any] = {
        "orders": Orders(workload=workload, load=Load(num_clients=4), bounds=Bounds(num_sessions=8)),
        "targets": [Target(label=label, base_url=f"http://{label}/v1", model=HOSTILE) for label in labels],
        "taken": servers,
        "slo": Slo(),
        "requirements": [],
        "allowed_errors": 0.0,
        "stopped": "",
        "warm_faults": {},
        "machine": Machine(system="Linux x", python="3", num_cpus=2, load_average=1.5),
        "begun_at": 0.0,
        "started_wall": 1_750_000_000.0,
        "version": "0",
    }
    return build_report(Findings(**(values | changes)))


def pair_of_reports() -> list[Report]:
    first = [taken(1.0, number) for number in range(MIN_PAIRS)]
    second = [taken(2.0, number, failed(0.0, "http_500", HOSTILE)) for number in range(MIN_PAIRS)]
    requirements = [read_requirement("ttft_p50<=1"), read_requirement("long.itl_p99<=0.1")]
    return [
        report_of([taken(1.0, 0)]),
        report_of([taken(1.0, 0, failed(0.0, "stream_cut", HOSTILE))], slo=Slo(ttft_s=1.0), stopped="it was told"),
        report_of(first, second, requirements=requirements, warm_faults={"timeout": HOSTILE}),
        report_of([]),
        report_of([], []),
    ]


REPORTS = pair_of_reports()
EACH_REPORT = pytest.mark.parametrize(
    "report", REPORTS, ids=["one server", "with errors", "two servers", "nothing", "nothing of two"]
)


@EACH_REPORT
def test_the_json_report_keeps_its_published_schema(report: Report) -> None:
    value = json.loads(render_json(report))
    jsonschema_rs.validate(json.loads(SCHEMA.read_text("utf-8")), value)


def test_the_published_schema_is_made_from_the_types() -> None:
    assert SCHEMA.read_text("utf-8") == report_schema()


@EACH_REPORT
def test_a_page_loads_nothing_and_nothing_in_it_becomes_markup(report: Report) -> None:
    page = render_html(report)
    assert page.count("<script>") == 1
    assert "alert(1)" not in page or "&lt;script&gt;alert(1)" in page
    assert not re.search(r"[\x00-\x08\x1b\u202e]", page)
    assert not re.search(r"(?:src|href|url)\s*[=(]", page)
    assert "default-src 'none'" in unescape(page)
    assert not re.search(r'\sstyle="|\son\w+="', page), "the page's policy would not allow it"


@EACH_REPORT
def test_plots_are_well_formed_and_stay_inside_their_frame(report: Report) -> None:
    for plot in draw_plots(report):
        root = ElementTree.fromstring(plot.standalone())
        for element in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                assert 0 <= float(element.get(name, 0)) <= 480, (plot.name, element.attrib)
            for point in (element.get("points") or "0,0").split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= 480
                assert 0 <= y <= plot.height


def test_a_comparison_draws_ratios_and_both_servers() -> None:
    plots = {plot.name: plot for plot in draw_plots(REPORTS[2])}
    assert "ratios" in plots
    assert "ttft_long" in plots
    assert "ttft_short" not in plots, "there are two groups: all and long"
    assert plots["ttft_long"].drawing.count("<polyline") == 2
    assert "better" in plots["ratios"].drawing
    assert "ratios" not in {plot.name for plot in draw_plots(REPORTS[0])}


LONGEST = "inter-token latency, longest"


def test_the_longest_gap_stands_wherever_gaps_do() -> None:
    report = REPORTS[2]
    told = (render_markdown(report), render_terminal(report), unescape(render_html(report)))
    assert all(LONGEST in text for text in told)
    assert all("itl_max" in server["spreads"] for server in json.loads(render_json(report))["servers"])
    assert "itl_max" in {ratio.metric for ratio in report.ratios}
    assert LONGEST in next(plot for plot in draw_plots(report) if plot.name == "ratios").drawing


@EACH_REPORT
def test_markdown_and_terminal_tell_the_same_numbers(report: Report) -> None:
    markdown, terminal = render_markdown(report), render_terminal(report)
    assert "<script>" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| time to first token, p50")]
    assert all(line.count("|") == rows[0].count("|") for line in rows)
    for row in rows:
        first = row.split("|")[2].strip()
        assert first in terminal


def test_a_narrow_terminal_gets_tables_without_spreads() -> None:
    wide, narrow = (render_terminal(REPORTS[2], width=width).splitlines() for width in (200, 80))
    row = "  time to first token, p50"
    assert max(map(len, narrow)) <= 80 < max(map(len, wide))
    assert next(line for line in narrow if line.startswith(row)).count("(") <= 1
    assert render_terminal(REPORTS[2]).splitlines()[0] == wide[0]


def test_errors_notes_requirements_and_an_early_end_are_told_everywhere() -> None:
    for render in (render_terminal, render_markdown, render_html):
        text = render(REPORTS[1])
        assert "stream" in text
        assert "It ended early: it was told." in text
        text = render(REPORTS[2]).replace("\\", "").replace("&lt;", "<")
        assert "NOT MET: long.itl_p99<=0.1" in text
        assert "met: ttft_p50<=1: 0.50 x" in text
        assert "requests of the warm-up failed" in text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 0),
        ({"more": [failed(0.0, "timeout")]}, 1),
        ({"more": [failed(0.0, "timeout")], "allowed_errors": 0.2}, 0),
        ({"requirements": ["ttft_p50<=0.5"]}, 1),
        ({"requirements": ["ttft_p50<=2"]}, 0),
        ({"requirements": ["nobody.ttft_p50<=2"]}, 1),
        ({"nothing": True}, 2),
    ],
    ids=["well", "an error", "an allowed error", "not met", "met", "not measured", "nothing done"],
)
def test_the_exit_status_says_whether_all_was_well(changes: dict[str, Any], status: int) -> None:
    runs = [] if changes.pop("nothing", False) else [taken(1.0, 0, *changes.pop("more", []))]
    changes["requirements"] = [read_requirement(text) for text in changes.get("requirements", [])]
    assert report_of(runs, **changes).exit_status == status


def test_a_server_that_answers_nothing_fails_a_comparison() -> None:
    assert report_of([taken(1.0, 0)], []).exit_status == 2


def test_what_makes_numbers_doubtful_is_noted() -> None:
    empty, counted = done(0.0), done(0.0, 1.0)
    late = done(0.0, 1.0)
    late.sent_at = 0.5
    report = report_of(
        [Taken(number=0, begun_at=0, ended_at=1, samples=[empty, counted, late], client_cpu_s=0.9, is_open_loop=True)]
    )
    told = " ".join(report.warnings)
    for words in ("counted by pieces", "used 90% of a processor", "ms late", "1 answers were empty"):
        assert words in told


def test_reports_and_plots_are_written(tmp_path: Path) -> None:
    paths = [tmp_path / f"a{suffix}" for suffix in RENDERERS]
    write_reports(REPORTS[2], paths, RENDERERS)
    assert all(path.stat().st_size > 1000 for path in paths)
    write_plots(REPORTS[2], tmp_path / "plots")
    assert {path.suffix for path in (tmp_path / "plots").iterdir()} == {".svg"}
    with pytest.raises(ReportError, match="cannot be made"):
        write_plots(REPORTS[0], tmp_path / "a.md")


def test_a_run_that_was_ended_early_is_shown_and_not_compared() -> None:
    cut = taken(9.0, 2, is_whole=False)
    report = report_of([taken(1.0, 0), taken(1.0, 1), cut], requirements=[read_requirement("ttft_p50<=1")])
    assert len(report.servers[0].runs) == 3
    assert report.servers[0].spreads["ttft_p50"].high == 1.0
    assert report.requirements[0].is_met
    assert report_of([cut]).servers[0].spreads["ttft_p50"].median == 9.0
