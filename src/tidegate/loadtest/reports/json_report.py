"""The report as JSON, and its JSON Schema, which `python -m tidegate.loadtest.reports.json_report FILE` writes."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from tidegate.loadtest.report import VERSION, Report


def render_json(report: Report) -> str:
    """Returns the whole report."""
    return json.dumps(msgspec.to_builtins(report), ensure_ascii=False, indent=1) + "\n"


def render_schema() -> str:
    """Returns the JSON Schema (2020-12) of the report, as docs/bench.report.schema.json holds it."""
    (reference,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Report of tidegate bench, version {VERSION}",
        **reference,
        "$defs": parts,
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    """Writes the schema to the file that the only argument names."""
    Path(sys.argv[1]).write_text(render_schema(), "utf-8")


if __name__ == "__main__":
    main()
