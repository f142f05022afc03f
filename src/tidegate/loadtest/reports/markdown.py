"""The report as Markdown, for a comment or a page. Pure."""

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
from tidegate.loadtest.reports.words import conclude, tell_requirement
from tidegate.reporting.markdown_text import quote


def render_markdown(report: Report) -> str:
    """Returns the report."""
    lines = [f"**{quote(conclude(report))}** {quote(describe_workload(report))}; {quote(report.load.describe())}.", ""]
    for server in report.servers:
        lines.append(f"- {quote(server.label)}: {quote(server.model)} at {quote(server.base_url)}.")
        lines.append(f"  {quote(count_requests(server))}; {quote(count_tokens(server))}.")
        lines += [f"  - {number} x {quote(kind)}: {quote(says)}" for kind, number, says in errors_of(server)]
    lines += [f"- {quote(tell_requirement(judged))}" for judged in report.requirements]
    lines += [f"- {quote(says)}" for says in report.warnings]
    lines += [f"- It ended early: {quote(report.stopped)}."] if report.stopped else []
    for group in ("", *groups_of(report)):
        lines += ["", *_table(report, group)]
    lines += ["", f"Medians over the runs (lowest to highest). Begun {report.started_at}, seed {report.workload.seed}."]
    return "\n".join(lines) + "\n"


def _table(report: Report, group: str) -> list[str]:
    has_two = len(report.servers) > 1
    heads = [f"{group} requests".strip(), *(server.label for server in report.servers), *(["ratio"] if has_two else [])]
    lines = ["| " + " | ".join(quote(head) for head in heads) + " |", "|" + "---|" * len(heads)]
    for row in rows_of(report, group):
        cells = [row.label, *(spell_spread(cell, row.unit) for cell in row.cells)]
        cells += [spell_ratio(row.ratio)] if has_two else []
        lines.append("| " + " | ".join(quote(cell) for cell in cells) + " |")
    return lines
