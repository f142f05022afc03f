"""The JSON Schema of the report, which `python -m tidegate.loadtest.reports.json_report FILE` writes."""

import sys
from pathlib import Path

from tidegate.loadtest.report import VERSION, Report
from tidegate.reporting.json_document import render_schema


def report_schema() -> str:
    """Returns what docs/bench.report.schema.json holds."""
    return render_schema(Report, f"Report of tidegate bench, version {VERSION}")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(report_schema(), "utf-8")
