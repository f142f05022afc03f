"""Joins JSON reports of `tidegate conform`, one for each peer, into the tables of docs/peers_findings.md.

python bench/peers/findings.py NAME=REPORT.json ... > docs/peers_findings.md
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

OUTCOMES = ("pass", "fail", "unsupported", "inconclusive")
SHOWN_CHARACTERS = 110


def main() -> int:
    reports: dict[str, list[dict[str, Any]]] = {}
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        reports[name] = json.loads(Path(path).read_text())["cases"]
    if not reports:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    sys.stdout.write("\n".join([*matrix(reports), "", *findings(reports)]) + "\n")
    return 0


def matrix(reports: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Returns the lines of a table of areas and peers."""
    lines = [
        "# What the suite says of peers",
        "",
        "Made by `bench/peers/findings.py` from the reports of one run of each; [peers.md](peers.md) tells of what and",
        "how. Each cell: pass / fail / unsupported / inconclusive.",
        "",
        "| area | " + " | ".join(reports) + " |",
        "|---" * (len(reports) + 1) + "|",
    ]
    areas = list(dict.fromkeys(case["area"] for cases in reports.values() for case in cases))
    rows = [(area, area) for area in areas] + [("**all**", None)]
    return lines + [
        f"| {name} | " + " | ".join(cell(cases, area) for cases in reports.values()) + " |" for name, area in rows
    ]


def cell(cases: list[dict[str, Any]], area: str | None) -> str:
    counts = Counter(case["outcome"] for case in cases if area in (None, case["area"]))
    return " / ".join(str(counts[outcome]) for outcome in OUTCOMES) if counts else "not run"


def findings(reports: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Returns the lines of a table of failing cases: peers that fail in the same words share a row."""
    lines = ["| case | severity | clause | peer | what it answers |", "|---" * 5 + "|"]
    rows: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for name, cases in reports.items():
        for case in cases:
            if case["outcome"] == "fail":
                fault = case["faults"][0]
                says = shown(f"{fault['ask']}: {fault['says']}")
                rows.setdefault((case["id"], says), (case, []))[1].append(name)
    for (case_id, says), (case, names) in sorted(rows.items()):
        clauses = ", ".join(
            clause["id"].removeprefix("openai:") for clause in case["clauses"] if clause["id"].startswith("openai:")
        )
        lines.append(f"| {case_id} | {case['severity']} | {clauses} | {', '.join(names)} | {says} |")
    return lines


def shown(text: str) -> str:
    """Returns the text as a cell of a table: on one line, and short."""
    text = re.sub(r"/[^\s\"]*/venv/", "venv/", text)  # where this machine keeps it is nobody's matter
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())
