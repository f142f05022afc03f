"""The catalogue as Markdown: a page for each area and an index, made from the cases themselves.

`python -m tidegate.conformance.reports.catalog_pages docs/conformance` writes them; a test holds them up to date.
"""

import importlib
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegate.conformance import catalog
from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity
from tidegate.conformance.catalog import CASES
from tidegate.conformance.reports.ask_sketch import sketch_curl, spell_path
from tidegate.conformance.reports.ask_words import describe_ask
from tidegate.conformance.reports.builder import describe_check, describe_clauses
from tidegate.reporting.visible_text import visible

INDEX = "README.md"
MAX_PAGE_BODY_BYTES = 1000
"""A larger body of a request is named on a page, not spelled."""
_MAX_COMMANDS = 4


def render_pages(cases: Sequence[Case] = CASES) -> Mapping[str, str]:
    """Returns the pages by the names of their files."""
    areas: dict[str, list[Case]] = {}
    for case in cases:
        areas.setdefault(case.area, []).append(case)
    introductions = _introduce(cases)
    pages = {f"{area}.md": _page(area, found, introductions.get(area, ())) for area, found in areas.items()}
    return {INDEX: _index(areas, introductions)} | pages


def _introduce(cases: Sequence[Case]) -> Mapping[str, Sequence[str]]:
    """Returns what the files of the catalogue say of themselves, by area, in the order of the catalogue."""
    told: dict[str, list[str]] = {}
    modules = [
        importlib.import_module(f"{catalog.__name__}.{found.name}") for found in pkgutil.iter_modules(catalog.__path__)
    ]
    owners = {case.id: module for module in modules for case in getattr(module, "CASES", ())}
    for case in cases:
        document = getattr(owners.get(case.id), "__doc__", None) or ""
        first = " ".join(document.partition("\n\n")[0].split())
        if first and first not in told.setdefault(case.area, []):
            told[case.area].append(first)
    return told


def _index(areas: Mapping[str, Sequence[Case]], introductions: Mapping[str, Sequence[str]]) -> str:
    num_cases = sum(map(len, areas.values()))
    severities = list(Severity)
    lines = [
        "# Conformance cases",
        "",
        f"What `tidegate conform` asks of a server: {num_cases} cases in {len(areas)} areas. Generated from the",
        "catalogue by `python -m tidegate.conformance.reports.catalog_pages docs/conformance`.",
        "",
        "A case of the `openai` profile checks what the public OpenAI contract or a standard below it says, and holds",
        "for every server; one of the `tidegate` profile checks what [CONTRACT.md](../../CONTRACT.md) promises beyond.",
        "The severity says what a failure does to a client. [conformance_reports.md](../conformance_reports.md) tells",
        "what a run leaves behind, [conformance_ci.md](../conformance_ci.md) how to run it in CI.",
        "",
        f"| area | cases | {' | '.join(severity.value for severity in severities)} | of the tidegate profile | about |",
        f"|---|--:|{'--:|' * len(severities)}--:|---|",
    ]
    for area, cases in areas.items():
        counts = [sum(case.severity is severity for case in cases) for severity in severities]
        counts.append(sum(case.profile is Profile.TIDEGATE for case in cases))
        told = " ".join(introductions.get(area, ()))
        numbers = " | ".join(str(count) if count else "" for count in counts)
        lines.append(f"| [{_title(area)}]({area}.md) | {len(cases)} | {numbers} | {told} |")
    return "\n".join(lines) + "\n"


def _title(area: str) -> str:
    return area.replace("_", " ").capitalize()


def _page(area: str, cases: Sequence[Case], introduction: Sequence[str]) -> str:
    lines = [f"# Conformance: {_title(area).lower()}", "", *(line for told in introduction for line in (told, ""))]
    lines += ["| case | what must be so | severity | profile |", "|---|---|---|---|"]
    for case in cases:
        lines.append(
            f"| [`{case.id}`](#{_anchor(case)}) | {_cell(case.title)} | {case.severity.value} | {case.profile.value} |"
        )
    for case in cases:
        lines += ["", *_case(case)]
    return "\n".join(lines) + "\n"


def _anchor(case: Case) -> str:
    """As GitHub makes it of the heading."""
    return case.id.replace(".", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _case(case: Case) -> list[str]:
    needs = f"; needs {', '.join(need.value for need in case.needs)}" if case.needs else ""
    lines = [f"## `{case.id}`", "", f"**{case.title}.** {case.why}", ""]
    lines.append(f"- Weight: {case.severity.value}; `{case.profile.value}` profile{needs}")
    if case.repeats > 1:
        lines.append(f"- Runs {case.repeats} times; each must hold")
    lines += [f"- Clause: {clause.text} ({clause.source}; `{clause.id}`)" for clause in describe_clauses(case)]
    is_only = len(case.asks) == 1
    lines += [f"- Asks {_ask(ask, is_only=is_only)}" for ask in case.asks]
    for expectation in case.expects:
        check = describe_check(expectation)
        of = "" if is_only else f" Of {', '.join(f'`{name}`' for name in check.on)}."
        args = f" `` {visible(check.args)} ``" if check.args else ""
        lines.append(f"- Must hold: {check.says or check.name}{of}{args}")
    return [*lines, "", *_by_hand(case)]


def _ask(ask: Ask, *, is_only: bool) -> str:
    name = "" if is_only else f" as `{ask.name}`"
    return "; ".join([f"`{ask.method} {visible(spell_path(ask))}`{name}", *describe_ask(ask)])


def _by_hand(case: Case) -> list[str]:
    lines = ["```sh"]
    for ask in case.asks[:_MAX_COMMANDS]:
        if len(case.asks) > 1:
            lines.append(f"# {ask.name}")
        lines.append(visible(sketch_curl(ask, max_body_bytes=MAX_PAGE_BODY_BYTES), keeps="\n\t"))
    if len(case.asks) > _MAX_COMMANDS:
        lines.append(f"# and {len(case.asks) - _MAX_COMMANDS} more")
    return [*lines, "```"]


def main() -> None:
    """Writes the pages into the folder that the only argument names, and takes away those of areas that are gone."""
    folder = Path(sys.argv[1])
    pages = render_pages()
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
