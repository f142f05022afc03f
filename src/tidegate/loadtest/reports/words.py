"""Sentences that several reports share. Pure."""

from tidegate.loadtest.metric import metric_of
from tidegate.loadtest.report import Report
from tidegate.loadtest.requirement import Judged, read_requirement
from tidegate.reporting.numbers import digits, spell


def tell_requirement(judged: Judged) -> str:
    """Returns whether a requirement is met, and what was measured."""
    if judged.measured is None:
        return f"NOT MET: {judged.text}: nothing was measured"
    metric = metric_of(read_requirement(judged.text).metric)
    measured = judged.measured
    sure = "" if judged.is_sure else "; not sure: too few runs, or they do not agree"
    median, low, high = (
        f"{digits(value)} x" if judged.is_ratio else spell(value, metric.unit)
        for value in (measured.median, measured.low, measured.high)
    )
    values = f"{median} ({low} to {high})"
    return f"{'met' if judged.is_met else 'NOT MET'}: {judged.text}: {values}{sure}"


def conclude(report: Report) -> str:
    """Returns what the exit status means, in a sentence."""
    if report.exit_status == 2:
        return "Nothing could be measured."
    if report.exit_status == 0:
        return "All requirements are met." if report.requirements else "Measured."
    if any(not judged.is_met for judged in report.requirements):
        return "A requirement is not met."
    return f"More than {report.allowed_errors:.1%} of the requests failed (--allow-errors)."
