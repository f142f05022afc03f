"""A comparison as JSON: the types of its document, from which the published schema is made.

`format` names the document, `version` counts as that of every report of ours: later minors add members, readers skip
what they do not know; a member that goes or changes its name raises the major. 2.0 is the first with a schema.

`python -m tidegate.conformance.diff.report_json FILE` writes the schema.
"""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.difference import Aspect, Meaning
from tidegate.conformance.diff.side import Side
from tidegate.reporting import json_document

FORMAT: Final = "tidegate-diff-report"
VERSION: Final = "2.0"


class SideDocument(Struct, frozen=True, kw_only=True):
    """One of two servers."""

    name: Annotated[str, Meta(description="its address, or the folder of its recording")]
    runs: int
    capabilities: Annotated[list[str], Meta(description="that every run found")]


class DifferenceDocument(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was."""

    meaning: Meaning
    aspect: Aspect
    case: Annotated[str | None, Meta(description="null: the server as a whole")]
    ask: str | None
    where: Annotated[str | None, Meta(description="the part of the aspect: a path, a header, a choice")]
    old: str
    new: str
    because: Annotated[str, Meta(description="why it has its meaning")]


class UnseenDocument(Struct, frozen=True, kw_only=True):
    """A declared change that did not come."""

    case: str
    aspect: Aspect | None
    reason: str


class DiffDocument(Struct, frozen=True, kw_only=True):
    """What changed for callers between two servers."""

    format: Literal["tidegate-diff-report"] = FORMAT
    version: Annotated[str, Meta(pattern=r"^2\.[0-9]+$")] = VERSION
    old: SideDocument
    new: SideDocument
    num_cases: Annotated[int, Meta(description="that were compared")]
    has_regressions: bool
    counts: Annotated[dict[str, int], Meta(description="differences by meaning")]
    not_in_old: Annotated[list[str], Meta(description="cases that the old side does not hold; not compared")]
    not_in_new: list[str]
    declared_not_seen: list[UnseenDocument]
    differences: list[DifferenceDocument]


def render_json(comparison: Comparison) -> str:
    """Returns the document."""
    return json_document.render_json(
        DiffDocument(
            old=_side(comparison.old),
            new=_side(comparison.new),
            num_cases=comparison.num_cases,
            has_regressions=comparison.has_regressions,
            counts={meaning.value: comparison.counts[meaning] for meaning in Meaning},
            not_in_old=list(comparison.not_in_old),
            not_in_new=list(comparison.not_in_new),
            declared_not_seen=[
                UnseenDocument(case=change.case, aspect=change.aspect, reason=change.reason)
                for change in comparison.unseen
            ],
            differences=[
                DifferenceDocument(
                    meaning=difference.meaning,
                    aspect=difference.aspect,
                    case=difference.case_id or None,
                    ask=difference.ask or None,
                    where=difference.where or None,
                    old=show(difference.old),
                    new=show(difference.new),
                    because=difference.because,
                )
                for difference in comparison.differences
            ],
        )
    )


def _side(side: Side) -> SideDocument:
    return SideDocument(
        name=side.name,
        runs=len(side.reports),
        capabilities=sorted(capability.value for capability in side.capabilities),
    )


def diff_schema() -> str:
    """Returns what docs/conformance/diff.schema.json holds."""
    return json_document.render_schema(DiffDocument, f"Report of tidegate diff, version {VERSION}")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(diff_schema(), "utf-8")
