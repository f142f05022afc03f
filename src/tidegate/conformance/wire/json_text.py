"""JSON as a strict reader takes it (RFC 8259): no NaN, no duplicate names, no lone surrogates lost on the way."""

import json
from typing import Any, Final


class _NotJson:
    """The one value that says: this text is not JSON."""

    def __repr__(self) -> str:
        return "NOT_JSON"


NOT_JSON: Final = _NotJson()


class _Missing:
    """The one value that says: there is nothing at this path."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name stands twice")
    return names


def read_json(data: bytes) -> Any:
    """Returns the value, or NOT_JSON."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_twins)
    except (ValueError, RecursionError):
        return NOT_JSON


def at(value: Any, *path: str | int) -> Any:
    """Returns what stands at a path of names and indices; MISSING where there is nothing. A null is a value."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return MISSING
        elif not isinstance(value, dict) or step not in value:
            return MISSING
        value = value[step]
    return value
