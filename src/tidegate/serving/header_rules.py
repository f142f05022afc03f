"""Request headers that ask for something: what each does, and which are not served yet (CONTRACT.md section 2).

A header that is not served is refused, as a field of the body would be: a caller who relies on it must not find out
by losing money.
"""

from collections.abc import Mapping

from tidegate.contract import headers
from tidegate.contract.quote import quote
from tidegate.errors import InvalidValue, UnsupportedParameter

NOT_SERVED: dict[str, str] = {
    headers.IN_DEADLINE_MS: "deadlines are not served yet",
    headers.IN_FIRST_TOKEN_DEADLINE_MS: "deadlines are not served yet",
}
PRIORITY_MIN, PRIORITY_MAX = -100, 100


def check_headers(given: Mapping[str, str]) -> None:
    """Raises UnsupportedParameter for the first header that asks for what is not served; `param` is its name."""
    for name, reason in NOT_SERVED.items():
        if name in given:
            raise UnsupportedParameter(f"{name}: {reason}", param=name)


def priority_of(given: Mapping[str, str]) -> int:
    """Returns the priority that `X-Priority` asks for; 0 without one. Raises InvalidValue."""
    text = given.get(headers.IN_PRIORITY)
    if text is None:
        return 0
    digits = text.strip().removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= len(str(PRIORITY_MAX)):
        value = int(text)
        if PRIORITY_MIN <= value <= PRIORITY_MAX:
            return value
    message = f"{headers.IN_PRIORITY}: {quote(text)} is not an integer from {PRIORITY_MIN} to {PRIORITY_MAX}"
    raise InvalidValue(message, param=headers.IN_PRIORITY)
