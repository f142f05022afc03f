"""The report as JSON, and its JSON Schema, which `python -m tidegate.conformance.reports.json_report FILE` writes."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from tidegate.conformance.reports.document import VERSION, ReportDocument


def render_json(document: ReportDocument) -> str:
    """Returns the whole report, one member a line."""
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, indent=1) + "\n"


def render_schema() -> str:
    """Returns the JSON Schema (2020-12) of the report, as docs/conformance/report.schema.json holds it."""
    (reference,), parts = msgspec.json.schema_components([ReportDocument], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Report of tidegate conform, version {VERSION}",
        **reference,
        "$defs": parts,
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    """Writes the schema to the file that the only argument names."""
    Path(sys.argv[1]).write_text(render_schema(), "utf-8")


if __name__ == "__main__":
    main()
