"""Request headers that ask for something: what each asks (CONTRACT.md section 2).

Read before the body is: a caller who relies on a header must hear of a mistake in it first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.contract import headers
from tidegate.contract.bounds import MAX_COUNT
from tidegate.contract.quote import quote
from tidegate.errors import InvalidValue, UnsupportedParameter

NOT_SERVED: dict[str, str] = {}
"""Headers that are refused, with the reason: a caller who relies on one must not find out by losing money."""
PRIORITY_MIN, PRIORITY_MAX = -100, 100


@dataclass(frozen=True, slots=True)
class HeaderWishes:
    """What the headers of one request ask for. Deadlines are milliseconds from receipt; None without one."""

    priority: int = 0
    deadline_ms: int | None = None
    first_token_deadline_ms: int | None = None


def read_wishes(given: Mapping[str, str]) -> HeaderWishes:
    """Raises UnsupportedParameter or InvalidValue for the first header that is wrong; `param` is its name."""
    for name, reason in NOT_SERVED.items():
        if name in given:
            raise UnsupportedParameter(f"{name}: {reason}", param=name)
    return HeaderWishes(
        priority=priority_of(given),
        deadline_ms=_milliseconds(given, headers.IN_DEADLINE_MS),
        first_token_deadline_ms=_milliseconds(given, headers.IN_FIRST_TOKEN_DEADLINE_MS),
    )


def priority_of(given: Mapping[str, str]) -> int:
    """Returns the priority that `X-Priority` asks for; 0 without one. Raises InvalidValue."""
    text = given.get(headers.IN_PRIORITY)
    if text is None:
        return 0
    digits = text.strip()
    value = _integer(digits.removeprefix("-"), PRIORITY_MAX)
    if value is None:
        message = f"{headers.IN_PRIORITY}: {quote(text)} is not an integer from {PRIORITY_MIN} to {PRIORITY_MAX}"
        raise InvalidValue(message, param=headers.IN_PRIORITY)
    return -value if digits.startswith("-") else value


def _milliseconds(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    value = _integer(text.strip(), MAX_COUNT)
    if not value:
        raise InvalidValue(f"{name}: {quote(text)} is not a whole number of milliseconds, 1 or more", param=name)
    return value


def _integer(digits: str, most: int) -> int | None:
    """Returns a decimal number up to `most`, None for anything else."""
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(most)):
        return None
    value = int(digits)
    return value if value <= most else None
