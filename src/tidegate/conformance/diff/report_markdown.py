"""A comparison as Markdown, for a pull request."""

from collections.abc import Iterator

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.difference import Difference, Meaning
from tidegate.conformance.diff.report_lines import ORDER, list_notes, place_of, sentence_of, shorten
from tidegate.reporting.visible_text import visible

MAX_ROWS = 100
"""Of one table: a comment of a pull request has at most 65,536 characters."""


def render_markdown(comparison: Comparison) -> str:
    """Returns the document."""
    return "\n".join(_parts(comparison)) + "\n"


def _parts(comparison: Comparison) -> Iterator[str]:
    sign = "regressions found" if comparison.has_regressions else "no regressions"
    yield f"## tidegate diff: {sign}"
    yield ""
    yield f"{sentence_of(comparison)}. Old: {_code(comparison.old.name)}, new: {_code(comparison.new.name)}."
    for meaning in ORDER:
        found = comparison.of(meaning)
        if not found:
            continue
        is_open = meaning in (Meaning.REGRESSION, Meaning.INTENDED)
        yield ""
        yield (
            f"### {meaning.value} ({len(found)})"
            if is_open
            else f"<details><summary>{meaning.value} ({len(found)})</summary>"
        )
        yield ""
        yield "| what | old | new | because |"
        yield "|---|---|---|---|"
        yield from map(_row, found[:MAX_ROWS])
        if len(found) > MAX_ROWS:
            yield f"| and {len(found) - MAX_ROWS} more | | | |"
        if not is_open:
            yield ""
            yield "</details>"
    for note in list_notes(comparison):
        yield ""
        yield f"{_text(note[0].upper() + note[1:])}."


def _row(difference: Difference) -> str:
    cells = (place_of(difference), _code(shorten(difference.old)), _code(shorten(difference.new)))
    return f"| {_text(cells[0])} | {cells[1]} | {cells[2]} | {_text(difference.because)} |"


def _text(value: str) -> str:
    value = visible(value, keeps="\n")
    for sign, escaped in (
        ("\\", "\\\\"),
        ("|", "\\|"),
        ("<", "&lt;"),
        ("\n", " "),
        ("`", "\\`"),
        ("*", "\\*"),
        ("_", "\\_"),
    ):
        value = value.replace(sign, escaped)
    return value


def _code(value: str) -> str:
    value = value.replace("|", "\\|").replace("\n", " ").replace("`", "'")
    return f"`{value}`" if value.strip() else "(empty)"
