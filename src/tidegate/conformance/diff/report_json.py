"""A comparison as JSON."""

import json
from typing import Any

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.side import Side

FORMAT = "tidegate-diff-1"


def render_json(comparison: Comparison) -> str:
    """Returns the document; `format` names its version, within which members are only added."""
    return json.dumps(
        {
            "format": FORMAT,
            "old": _side(comparison.old),
            "new": _side(comparison.new),
            "num_cases": comparison.num_cases,
            "has_regressions": comparison.has_regressions,
            "counts": {meaning.value: count for meaning, count in comparison.counts.items()},
            "not_in_old": list(comparison.not_in_old),
            "not_in_new": list(comparison.not_in_new),
            "declared_not_seen": [
                {"case": change.case, "aspect": change.aspect.value if change.aspect else None, "reason": change.reason}
                for change in comparison.unseen
            ],
            "differences": [
                {
                    "meaning": difference.meaning.value,
                    "aspect": difference.aspect.value,
                    "case": difference.case_id or None,
                    "ask": difference.ask or None,
                    "where": difference.where or None,
                    "old": show(difference.old),
                    "new": show(difference.new),
                    "because": difference.because,
                }
                for difference in comparison.differences
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "runs": len(side.reports),
        "capabilities": sorted(capability.value for capability in side.capabilities),
    }
