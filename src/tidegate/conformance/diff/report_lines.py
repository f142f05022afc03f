"""A comparison in plain text: for a terminal, and the lines that other reports share."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.difference import Difference, Meaning
from tidegate.reporting.visible_text import visible

MAX_SHOWN = 200
"""Characters of a value in a line."""

MAX_LISTED = 100
"""Differences of one meaning on a terminal; more are counted."""

MAX_NAMED = 20
"""Cases that are named where they were not compared."""

ONLY_ASK = "it"
"""What cases call an ask that needs no name."""

ORDER = (Meaning.REGRESSION, Meaning.INTENDED, Meaning.IMPROVEMENT, Meaning.ADDITION, Meaning.VARIATION)


def shorten(value: object) -> str:
    """Returns the value on one line, its middle cut out where it is long."""
    text = visible(show(value))
    half = MAX_SHOWN // 2 - 3
    return text if len(text) <= MAX_SHOWN else f"{text[:half]} ... {text[-half:]}"


def place_of(difference: Difference, *, names_case: bool = True) -> str:
    """Returns what differs, in words: `status of second in errors.no_model`. The only ask of a case is not named."""
    inside = f" of {difference.ask}" if difference.ask not in ("", ONLY_ASK) else ""
    part = f" {difference.where}" if difference.where else ""
    case = f" in {difference.case_id}" if difference.case_id and names_case else ""
    return visible(f"{difference.aspect.value}{part}{inside}{case}")


def sentence_of(comparison: Comparison) -> str:
    """Returns the outcome as one sentence."""
    counts = comparison.counts
    parts = [f"{counts[meaning]} {_plural(meaning, counts[meaning])}" for meaning in ORDER if counts[meaning]]
    what = ", ".join(parts) if parts else "no difference"
    return f"{what} in {comparison.num_cases} cases"


def tell_exit(comparison: Comparison) -> str:
    """Returns the exit status of the command with its meaning."""
    return "Exit status 1: something regressed" if comparison.has_regressions else "Exit status 0: nothing regressed"


def _plural(meaning: Meaning, count: int) -> str:
    return meaning.value if count == 1 else f"{meaning.value}s"


def write_lines(comparison: Comparison, *, shows_variation: bool = False) -> Iterator[str]:
    """Yields the report; allowed variations one by one only where they are asked for."""
    yield f"old: {comparison.old.name}"
    yield f"new: {comparison.new.name}"
    for meaning in ORDER:
        found = comparison.of(meaning)
        if not found:
            continue
        yield ""
        yield f"{meaning.value} ({len(found)})"
        if meaning is Meaning.VARIATION and not shows_variation:
            counts = Counter(difference.aspect.value for difference in found)
            yield "  " + ", ".join(f"{name}: {count}" for name, count in counts.most_common())
            continue
        yield from _list(found[:MAX_LISTED])
        if len(found) > MAX_LISTED:
            yield f"  and {len(found) - MAX_LISTED} more; a report (--report FILE.html) holds them all"
    yield from _notes(comparison)
    yield ""
    yield sentence_of(comparison)


def _list(differences: Iterable[Difference]) -> Iterator[str]:
    for difference in differences:
        yield f"  {place_of(difference)}"
        yield f"    old  {shorten(difference.old)}"
        yield f"    new  {shorten(difference.new)}"
        yield f"    {visible(difference.because)}"


def _notes(comparison: Comparison) -> Iterator[str]:
    for note in list_notes(comparison):
        yield ""
        yield note


def list_notes(comparison: Comparison) -> Iterator[str]:
    """Yields what else there is to say: cases that were not compared, declared changes that did not come."""
    for name, case_ids in (("old", comparison.not_in_old), ("new", comparison.not_in_new)):
        if case_ids:
            rest = f" and {len(case_ids) - MAX_NAMED} more" if len(case_ids) > MAX_NAMED else ""
            yield f"not compared, the {name} side does not hold them: {', '.join(case_ids[:MAX_NAMED])}{rest}"
    for change in comparison.unseen:
        aspect = f" {change.aspect.value}" if change.aspect else ""
        yield visible(f"declared and not seen: {change.case}{aspect} ({change.reason})")
