"""The rows that every report shows: the numbers of each server side by side, their ratio, errors by kind. Pure."""

from dataclasses import dataclass

from tidegate.loadtest.comparison import Ratio
from tidegate.loadtest.distribution import Spread
from tidegate.loadtest.metric import SHOWN_OF, metric_of
from tidegate.loadtest.report import Report, ServerReport
from tidegate.loadtest.sample import MEANINGS
from tidegate.reporting.numbers import digits, spell

HEADLINES = ("requests_per_s", "output_tokens_per_s", "goodput_per_s", "good_share")
NUMERALS = "0123456789.,e-"
SIGNS = {"better": "▲", "worse": "▼", "unclear": "·"}


@dataclass(frozen=True, slots=True)
class Row:
    """`cells`: a server each. `ratio`: how the first stands to the second, if there are two."""

    label: str
    unit: str
    cells: tuple[Spread | None, ...]
    ratio: Ratio | None


def groups_of(report: Report) -> list[str]:
    """Returns the names of groups; empty where all requests are of one."""
    return sorted({group.name for server in report.servers for run in server.runs for group in run.groups})


def rows_of(report: Report, group: str = "") -> list[Row]:
    """Returns rates, all percentiles and the longest gap, of everything or of one group."""
    names = (*HEADLINES, *(f"{time}_{point}" for time, points in SHOWN_OF.items() for point in points))
    ratios = {ratio.metric: ratio for ratio in report.ratios}
    rows = []
    for name in names:
        full = f"{group}.{name}" if group else name
        cells = tuple(server.spreads.get(full) for server in report.servers)
        if any(cell is not None for cell in cells):
            metric = metric_of(name)
            rows.append(Row(metric.label, metric.unit, cells, ratios.get(full)))
    return rows


def spell_spread(spread: Spread | None, unit: str, *, has_ends: bool = True) -> str:
    """Returns the median over the runs, and the lowest and highest where they differ, and where `has_ends`."""
    if spread is None:
        return "-"
    median = spell(spread.median, unit)
    return f"{median} ({spell_ends(spread, unit)})" if has_ends and spread.low != spread.high else median


def spell_ends(spread: Spread, unit: str) -> str:
    """Returns the lowest and the highest, with their unit where the median has another: `33.5 to 42.6`."""
    low, high = spell(spread.low, unit), spell(spread.high, unit)
    shared = spell(spread.median, unit).lstrip(NUMERALS)
    if low.lstrip(NUMERALS) == high.lstrip(NUMERALS) == shared:
        low, high = low.removesuffix(shared), high.removesuffix(shared)
    return f"{low} to {high}"


def spell_ratio(ratio: Ratio | None) -> str:
    """Returns a sign for who is better, the median of the ratios and their spread."""
    if ratio is None:
        return "-"
    spread = "" if ratio.num_pairs == 1 else f" ({digits(ratio.low)} to {digits(ratio.high)})"
    return f"{SIGNS[ratio.verdict]} {digits(ratio.median)} x{spread}"


def count_requests(server: ServerReport) -> str:
    """Returns how many requests there were, and what became of them."""
    runs = [run.total for run in server.runs]
    num_done, num_errors = sum(run.num_done for run in runs), sum(run.num_errors for run in runs)
    num_left = sum(run.num_unfinished for run in runs)
    says = f"{sum(run.num_requests for run in runs):,} requests in {len(runs)} runs: {num_done:,} done"
    says += f", {num_errors:,} errors" if num_errors else ", no errors"
    return says + (f", {num_left:,} unfinished at its end" if num_left else "")


def count_tokens(server: ServerReport) -> str:
    """Returns what was read and written, as the server counted it or by pieces of text."""
    runs = [run.total for run in server.runs]
    prompts, cached = [run.prompt_tokens for run in runs], [run.cached_tokens for run in runs]
    says = f"{sum(run.output_tokens for run in runs):,} output tokens"
    if any(number is not None for number in prompts):
        says = f"{sum(number or 0 for number in prompts):,} prompt and {says}"
    if any(number is not None for number in cached):
        total = sum(number or 0 for number in prompts) or 1
        says += f", {sum(number or 0 for number in cached) / total:.0%} of the prompts from the cache"
    ways = {run.counted_by for run in server.runs if run.total.num_done}
    return says + (" (by its usage)" if ways == {"usage"} else " (counted by pieces where it tells no usage)")


def errors_of(server: ServerReport) -> list[tuple[str, int, str]]:
    """Returns kinds of errors, most frequent first: name, number, and what it means or what was said first."""
    counts: dict[str, int] = {}
    details: dict[str, str] = {}
    for run in server.runs:
        for kind, number in run.total.errors.items():
            counts[kind] = counts.get(kind, 0) + number
        details = run.details | details
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [(kind, number, _tell_error(kind, details.get(kind, ""))) for kind, number in ranked]


def _tell_error(kind: str, detail: str) -> str:
    meaning = MEANINGS.get(kind, "the server answered with this status" if kind.startswith("http_") else "")
    return f"{meaning}: {detail}" if detail else meaning


def describe_workload(report: Report) -> str:
    """Returns what was asked, in words."""
    work = report.workload
    beginnings = "a shared beginning" if work.num_prefixes == 1 else f"{work.num_prefixes} shared beginnings"
    says = {
        "fixed": f"prompts of {work.input} tokens of their own, answers of up to {work.output}",
        "shared-prefix": f"{beginnings} of {work.prefix_tokens} tokens, {work.input} tokens "
        f"of their own behind, answers of up to {work.output}",
        "agent": f"conversations of {work.num_turns} turns: {beginnings} of {work.prefix_tokens} tokens, "
        f"{work.input} tokens of tool results a turn, answers of up to {work.output}",
        "mixed": f"prompts of {work.input} tokens with answers of up to {work.output}, one in {work.long_every} has "
        f"{work.long_input} tokens instead",
        "constrained": f"prompts of {work.input} tokens, answers of up to {work.output} that keep a JSON Schema",
        "file": "the requests of a file",
    }
    return f"{work.kind}: {says[work.kind]} ({work.api})"
