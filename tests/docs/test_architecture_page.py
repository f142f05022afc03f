"""docs/architecture.md and docs/decisions.md speak of the code that there is."""

import re
import tomllib
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tidegate.core import sequence_status
from tidegate.engine import session
from tidegate.engines.pool import member_states, roll_states, scaling
from tidegate.engines.ray import boot_watch
from tidegate.lifecycle import drain, ledger, transitions

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PATH = re.compile(r"`([\w/]+\.py)`")


def nested(table: dict[tuple[Any, Any], Any]) -> dict[Any, dict[Any, Any]]:
    rows: dict[Any, dict[Any, Any]] = {}
    for (state, event), after in table.items():
        rows.setdefault(state, {})[event] = after
    return rows


def render_events(table: dict[Any, dict[Any, Enum]]) -> list[str]:
    return [
        f"| {state.name} | {' · '.join(f'{event.name}: {after.name}' for event, after in row.items())} |"
        for state, row in table.items()
        if row
    ]


TABLES: dict[str, list[str]] = {
    "WORK": render_events(transitions.WORK),
    "REPLY": render_events(transitions.REPLY),
    "JOINT": [f"| {work.name}, {reply.name} | {after.name} |" for (work, reply), after in transitions.JOINT.items()],
    "SENDABLE": [
        f"| {event.name} | {', '.join(work.name for work in sorted(allowed))} |"
        for event, allowed in transitions.SENDABLE.items()
    ],
    "sequence": render_events(sequence_status.TRANSITIONS),
    "session": render_events(nested(session.TRANSITIONS)),
    "member": render_events(member_states.MEMBER),
    "scale": [
        f"| {phase.name} | "
        f"{' · '.join(f'{want.name}: {act.name}, {after.name}' for want, (act, after) in row.items())} |"
        for phase, row in scaling.SCALE.items()
        if row
    ],
    "roll": render_events(roll_states.ROLL),
    "drain": render_events(drain.DRAIN),
    "ledger": render_events(ledger.ENTRY),
    "events of an actor": [
        f"| {state.name}, {fact.name} | {after.name}, {verdict.name} |"
        for (state, fact), (after, verdict) in boot_watch.RULES.items()
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_state_tables_are_those_of_the_code(name: str) -> None:
    assert "\n".join(TABLES[name]) + "\n\n" in PAGE


def absent_files(text: str) -> list[str]:
    """Returns what a text names and neither the source nor the repository has.

    A bare name belongs to the row's package or the last folder.
    """
    absent: list[str] = []
    for line in text.splitlines():
        folders = ["", *re.findall(r"^\| `(\w+)` \|", line)]
        for path in PATH.findall(line):
            if not any((SOURCE / folder / path).is_file() for folder in folders) and not (ROOT / path).is_file():
                absent.append(path)
            folders.append(str(Path(path).parent))
    return absent


@pytest.mark.parametrize("page", ["architecture.md", "decisions.md"])
def test_every_file_that_a_page_names_exists(page: str) -> None:
    assert absent_files((ROOT / "docs" / page).read_text("utf-8")) == []


def test_every_package_has_its_row() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert packages <= rows


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRACT.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.split(r"[ <>=;\[]", line)[0] for line in lines}
    table = (ROOT / "docs" / "decisions.md").read_text("utf-8").partition("## Processes")[0]
    assert names == set(re.findall(r"`([a-z0-9-]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE))))
