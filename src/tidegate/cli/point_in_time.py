"""Instants of the wall clock as people write and read them. Dates without a zone are UTC."""

import re
from datetime import UTC, datetime

_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def parse_instant(text: str, wall: float) -> float:
    """Returns seconds since 1970 for a span from `wall` on (`90d`) or an ISO date with or without time.

    Raises ValueError with a message for people.
    """
    span = _SPAN.fullmatch(text)
    if span is not None:
        return wall + int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a span such as 30m, 12h, 90d, 4w nor a date such as 2030-12-31"
        ) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def write_instant(instant: float | None) -> str | None:
    """Returns an instant in ISO form, UTC, in whole seconds; None for None."""
    if instant is None:
        return None
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
