"""The report as text for a terminal. Pure."""

from tidegate.loadtest.report import Report
from tidegate.loadtest.reports.rows import (
    count_requests,
    count_tokens,
    describe_workload,
    errors_of,
    groups_of,
    rows_of,
    spell_ratio,
    spell_spread,
)
from tidegate.loadtest.reports.words import tell_requirement
from tidegate.reporting.terminal_text import fold


def render_terminal(report: Report, *, width: int | None = None) -> str:
    """Returns the report. `width`: of the terminal; where tables are too wide for it, numbers of servers stand without
    their spread. None: where it is none.
    """
    lines = [describe_workload(report), f"{report.load.describe()}; seed {report.workload.seed}"]
    for server in report.servers:
        lines += ["", f"{server.label}: {server.model} at {server.base_url}", f"  {count_requests(server)}"]
        lines.append(f"  {count_tokens(server)}")
        lines += [f"  {number} x {kind}: {says}" for kind, number, says in errors_of(server)]
    for group in ("", *groups_of(report)):
        lines += ["", f"{group} requests" if group else "median over the runs (lowest to highest)"]
        wide, narrow = _table(report, group, has_spreads=True), _table(report, group, has_spreads=False)
        lines += wide if width is None or max(map(len, wide), default=0) <= width else narrow
    if report.requirements:
        lines += ["", *(tell_requirement(judged) for judged in report.requirements)]
    lines += [f"note: {says}" for says in report.warnings]
    if report.stopped:
        lines.append(f"It ended early: {report.stopped}.")
    return "\n".join(fold(lines, width)) + "\n"


def _table(report: Report, group: str, *, has_spreads: bool) -> list[str]:
    has_two = len(report.servers) > 1
    head = ["", *(server.label for server in report.servers)]
    rows = [head + (["ratio"] if has_two else [])]
    for row in rows_of(report, group):
        cells = [row.label, *(spell_spread(cell, row.unit, has_ends=has_spreads) for cell in row.cells)]
        rows.append(cells + ([spell_ratio(row.ratio)] if has_two else []))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [f"  {line}" for line in lines if line.strip() and (has_two or line != lines[0])]
