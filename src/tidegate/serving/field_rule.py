"""FieldRule: what becomes of one field of a request. Tables of them are the rules; this applies them.

A row says how a field is used, what makes it malformed (400), and when it is well formed but not served (422
`unsupported_parameter`: never silently ignored). All checks run before the first refusal, both in the table's order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tidegate.errors import UnsupportedParameter
from tidegate.serving.request_policy import RequestPolicy

R = TypeVar("R", bound=Struct, contravariant=True)

NOT_BY_ENGINE = "the engine does not honour it"
_ASKS_FOR_NOTHING: tuple[object, ...] = ([], {})


class Use(Enum):
    """What a field does."""

    ACTS = "acts"
    """It changes what is generated, or what is returned."""
    NO_EFFECT = "no effect"
    """Accepted, and nothing follows from it here."""
    NOT_SERVED = "not served"
    """Accepted only with values that ask for nothing; otherwise 422."""


@dataclass(frozen=True, slots=True)
class FieldRule(Generic[R]):
    """`check` raises InvalidRequest, `refuse` UnsupportedParameter. Both run only where the field is given.

    `reason` says why a field is not served.
    """

    use: Use
    check: Callable[[R, RequestPolicy], None] | None = None
    refuse: Callable[[R], None] | None = None
    reason: str | None = None


def unserved(param: str, reason: str) -> UnsupportedParameter:
    """Returns the error for a field that is not served."""
    return UnsupportedParameter(f"{param}: {reason}", param=param)


def acts(
    check: Callable[[R, RequestPolicy], None] | None = None, refuse: Callable[[R], None] | None = None
) -> FieldRule[R]:
    """A row for a field that does something."""
    return FieldRule(Use.ACTS, check, refuse)


def no_effect() -> FieldRule[Struct]:
    """A row for a field that changes nothing."""
    return FieldRule(Use.NO_EFFECT)


def not_served(field: str, reason: str, *, but: Callable[[Any], bool] | None = None) -> FieldRule[Struct]:
    """A row for a field of which only the values that satisfy `but` are accepted."""

    def refuse(request: Struct) -> None:
        if but is None or not but(getattr(request, field)):
            raise unserved(field, reason)

    return FieldRule(Use.NOT_SERVED, None, refuse, reason)


def apply_rules(rules: Mapping[str, FieldRule[R]], request: R, policy: RequestPolicy) -> None:
    """Raises the first InvalidRequest, else the first UnsupportedParameter, that the fields of `request` deserve."""
    given = {field: rule for field, rule in rules.items() if getattr(request, field) is not None}
    for rule in given.values():
        if rule.check is not None:
            rule.check(request, policy)
    for field, rule in given.items():
        if rule.refuse is not None:
            rule.refuse(request)
        if field in policy.unserved_fields and getattr(request, field) not in _ASKS_FOR_NOTHING:
            raise unserved(field, NOT_BY_ENGINE)
