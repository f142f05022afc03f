"""The report as one HTML file: nothing is loaded from elsewhere, and it reads without JavaScript. Pure."""

from importlib import resources

from tidegate.loadtest.report import Report, ServerReport
from tidegate.loadtest.reports.plots import STYLE as PLOT_STYLE
from tidegate.loadtest.reports.plots import draw_plots
from tidegate.loadtest.reports.rows import (
    Row,
    count_requests,
    count_tokens,
    describe_workload,
    errors_of,
    groups_of,
    rows_of,
    spell_ends,
    spell_ratio,
)
from tidegate.loadtest.reports.words import conclude, tell_requirement
from tidegate.reporting.markup import Markup, Part, tag
from tidegate.reporting.numbers import spell
from tidegate.reporting.page import facts, header, render_page, table

_ASSETS = resources.files("tidegate.loadtest.reports") / "assets"
_STYLE = _ASSETS.joinpath("bench.css").read_text("utf-8") + PLOT_STYLE
TALL = 400
TILES = ("output_tokens_per_s", "requests_per_s", "ttft_p50", "itl_p99", "itl_max", "goodput_per_s")


def render_html(report: Report) -> str:
    """Returns the page."""
    names = " against ".join(server.model or "a server" for server in report.servers)
    return render_page(f"Load on {names}", _header(report), tag("main", *_main(report)), style=_STYLE)


def _header(report: Report) -> Markup:
    pairs: list[tuple[str, Part]] = [
        (server.label.capitalize(), f"{server.model} at {server.base_url}") for server in report.servers
    ]
    pairs += [("Load", report.load.describe()), ("Workload", describe_workload(report))]
    pairs += [("Begun", report.started_at.replace("T", " ").replace("Z", " UTC")), ("Seed", str(report.workload.seed))]
    machine = report.machine
    pairs.append(("Client", f"{machine.system}, {machine.num_cpus} processors, Python {machine.python}"))
    if machine.load_average is not None:
        pairs.append(("Load average before", f"{machine.load_average:.1f}"))
    says = [_say(conclude(report), "good" if report.exit_status == 0 else "bad")]
    says += [_say(tell_requirement(one), "good" if one.is_met else "bad") for one in report.requirements]
    says += [_say(text, "warn") for text in report.warnings]
    says += [_say(f"It ended early: {report.stopped}.", "warn")] if report.stopped else []
    told = tag("ul", *says, class_="told")
    return header(f"tidegate bench {report.tidegate}", _title(report), facts(pairs), told)


def _title(report: Report) -> str:
    if len(report.servers) > 1:
        return "Two servers under the same load, in turns"
    return f"{report.servers[0].model or 'A server'} under load"


def _say(text: str, kind: str) -> Markup:
    return tag("li", text, class_=kind)


def _main(report: Report) -> list[Part]:
    plots = [
        tag("figure", tag("h3", plot.title), plot.inline(), class_="tall" if plot.height > TALL else None)
        for plot in draw_plots(report)
    ]
    return [
        _tiles(report.servers[0], report) if len(report.servers) == 1 else None,
        tag("h2", "At a glance"),
        tag("p", _how_to_read(report), class_="note"),
        tag("div", *plots, class_="plots"),
        *(_table(report, group) for group in ("", *groups_of(report))),
        *(_server(server) for server in report.servers),
    ]


def _how_to_read(report: Report) -> str:
    says = "Curves: how many of all values (upwards) are at most so long (to the right); dots are p50, p90, p99. "
    if report.ratios:
        says += "Ratios: the first server's number over the second's in runs side by side; the bar is their spread. "
    return says + "Times of an open loop count from when a request was due."


def _tiles(server: ServerReport, report: Report) -> Markup:
    rows = {row.label: row for row in rows_of(report)}
    items = []
    for name in TILES:
        spread = server.spreads.get(name)
        row = next((row for row in rows.values() if spread is not None and row.cells[0] == spread), None)
        if spread is not None and row is not None:
            items.append(tag("li", tag("span", row.label), tag("b", spell(spread.median, row.unit))))
    return tag("ul", *items, class_="tiles")


def _table(report: Report, group: str) -> Markup:
    heads = [*(server.label for server in report.servers), *(["first over second"] if report.ratios else [])]
    rows = [_row(row, has_ratio=bool(report.ratios)) for row in rows_of(report, group)]
    title = f"Numbers of {group} requests" if group else "Numbers of all requests"
    note = "Medians over the runs; behind them the lowest and the highest."
    return tag("section", tag("h2", title), tag("p", note, class_="note"), table((None, *heads), rows))


def _row(row: Row, *, has_ratio: bool) -> Markup:
    cells = []
    for spread in row.cells:
        if spread is None:
            cells.append(tag("td", "-", class_="number"))
            continue
        more = tag("small", spell_ends(spread, row.unit)) if spread.low != spread.high else None
        cells.append(tag("td", spell(spread.median, row.unit), more, class_="number"))
    if has_ratio:
        verdict = row.ratio.verdict if row.ratio else "unclear"
        median, _, ends = spell_ratio(row.ratio).partition(" (")
        more = tag("small", ends.rstrip(")")) if ends else None
        cells.append(tag("td", tag("span", median, class_=f"sign-{verdict}"), more, class_="number"))
    return tag("tr", tag("th", row.label, scope="row"), *cells)


def _server(server: ServerReport) -> Markup:
    rows = [
        tag("tr", tag("th", kind, scope="row"), tag("td", f"{number:,}", class_="number"), tag("td", says))
        for kind, number, says in errors_of(server)
    ]
    runs = ", ".join(
        f"{run.number + 1}: {spell(run.duration_s, 's')}, client {run.client_cpu:.0%} of a processor"
        for run in server.runs
    )
    return tag(
        "section",
        tag("h2", server.label.capitalize()),
        tag("p", f"{count_requests(server)}. {count_tokens(server)}."),
        tag("p", f"Runs: {runs}.", class_="note") if runs else None,
        table((), rows) if rows else None,
    )
