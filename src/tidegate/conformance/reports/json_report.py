"""The JSON Schema of the report, which `python -m tidegate.conformance.reports.json_report FILE` writes."""

import sys
from pathlib import Path

from tidegate.conformance.reports.document import VERSION, ReportDocument
from tidegate.reporting.json_document import render_schema


def report_schema() -> str:
    """Returns what docs/conformance/report.schema.json holds."""
    return render_schema(ReportDocument, f"Report of tidegate conform, version {VERSION}")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(report_schema(), "utf-8")
