"""A comparison as Markdown, for a pull request."""

from collections.abc import Iterator

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.difference import Difference, Meaning
from tidegate.conformance.diff.report_lines import ORDER, list_notes, place_of, sentence_of, shorten
from tidegate.reporting.markdown_text import code, quote

MAX_ROWS = 100
"""Of one table: a comment of a pull request has at most 65,536 characters."""


def render_markdown(comparison: Comparison) -> str:
    """Returns the document."""
    return "\n".join(_parts(comparison)) + "\n"


def _parts(comparison: Comparison) -> Iterator[str]:
    sign = "regressions found" if comparison.has_regressions else "no regressions"
    yield f"## tidegate diff: {sign}"
    yield ""
    yield f"{sentence_of(comparison)}. Old: {code(comparison.old.name)}, new: {code(comparison.new.name)}."
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
        yield f"{quote(note[0].upper() + note[1:])}."


def _row(difference: Difference) -> str:
    values = (_value(shorten(value)) for value in (difference.old, difference.new))
    return f"| {quote(place_of(difference))} | {' | '.join(values)} | {quote(difference.because)} |"


def _value(shown: str) -> str:
    return code(shown, in_table=True) if shown.strip() else "(empty)"
