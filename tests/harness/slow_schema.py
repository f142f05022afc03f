"""A schema within every limit of size that takes a second or so to compile."""

from typing import Any


def slow_schema(number: int) -> dict[str, Any]:
    """Each number gives another one, in whose compilation nothing of an earlier one helps."""
    objects = {
        f"o{number}_{j}": {"type": "object", "properties": {f"p{number}_{j}_{i}": {} for i in range(280)}}
        for j in range(40)
    }
    return {"type": "object", "properties": objects}
