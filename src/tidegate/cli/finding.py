"""What one check of `tidegate doctor` has found."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    """The server starts, and something about it may not be wanted."""
    PROBLEM = "problem"
    """The server will not start, or not serve."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report. `advice` says what to do next, as a command where there is one."""

    level: Level
    subject: str
    found: str
    advice: str | None = None


def ok(subject: str, found: str, advice: str | None = None) -> Finding:
    return Finding(Level.OK, subject, found, advice)


def warning(subject: str, found: str, advice: str) -> Finding:
    return Finding(Level.WARNING, subject, found, advice)


def problem(subject: str, found: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, subject, found, advice)


def megabytes(num_bytes: int) -> str:
    """Returns a size for people."""
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.0f} MB"
