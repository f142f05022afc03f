"""Joins JSON reports of `tidegate conform`, one for each peer, into the tables of docs/peers_findings.md.

python bench/peers/findings.py NAME=REPORT.json ... > docs/peers_findings.md

`read_by_hand.json` says which failing cases were read by hand, transcript and clause, and held to be right, and when.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

OUTCOMES = ("pass", "fail", "unsupported", "inconclusive")
SHOWN_CHARACTERS = 110
SERVER_ENDED = "it went away while this case ran"
READ_BY_HAND = Path(__file__).with_name("read_by_hand.json")
Reports = dict[str, list[dict[str, Any]]]


def main() -> int:
    reports: Reports = {}
    for argument in sys.argv[1:]:
        name, _, path = argument.partition("=")
        reports[name] = json.loads(Path(path).read_text())["cases"]
    if not reports:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    judged = json.loads(READ_BY_HAND.read_text())
    lines = [*matrix(reports), "", *hand_judgement(reports, judged), "", *findings(reports)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def matrix(reports: Reports) -> list[str]:
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


def hand_judgement(reports: Reports, judged: dict[str, Any]) -> list[str]:
    """Returns the lines that say, for each peer, how many of its failing cases were read, and which were not."""
    lines = ["| peer | failing cases | read by hand | on | not read |", "|---" * 5 + "|"]
    for name, cases in reports.items():
        failing = [case["id"] for case in cases if finding(case) is not None]
        known = judged.get(name, {"on": "never", "cases": []})
        unread = [case_id for case_id in failing if case_id not in known["cases"]]
        row = (name, len(failing), len(failing) - len(unread), known["on"], ", ".join(unread) or "none")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return lines


def findings(reports: Reports) -> list[str]:
    """Returns the lines of a table of failing cases: peers that fail in the same words share a row."""
    lines = ["| case | severity | clause | peer | what it answers |", "|---" * 5 + "|"]
    rows: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for name, cases in reports.items():
        for case in cases:
            if (says := finding(case)) is not None:
                rows.setdefault((case["id"], says), (case, []))[1].append(name)
    for (case_id, says), (case, names) in sorted(rows.items()):
        clauses = ", ".join(
            clause["id"].removeprefix("openai:") for clause in case["clauses"] if clause["id"].startswith("openai:")
        )
        lines.append(f"| {case_id} | {case['severity']} | {clauses} | {', '.join(names)} | {says} |")
    return lines


def finding(case: dict[str, Any]) -> str | None:
    """Returns in words what a case found, if anything. That the server itself ended is a finding too: the suite says
    no more of it than that nothing answers any longer, and a person has looked why.
    """
    if case["outcome"] == "fail":
        fault = case["faults"][0]
        return shown(f"{fault['ask']}: {fault['says']}")
    return "the server process ends" if case["reason"].endswith(SERVER_ENDED) else None


def shown(text: str) -> str:
    """Returns the text as a cell of a table: on one line, and short."""
    text = re.sub(r"/[^\s\"]*/venv/", "venv/", text)  # where this machine keeps it is nobody's matter
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())
