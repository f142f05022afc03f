"""What may be said of an API key: its name, what it may use, its ranges, and when it stops being valid.

Decides whether a policy is well formed, and in which state a key is at an instant. Does not know the key itself, how it
is stored, or who presents it. Instants are of the wall clock, in seconds since 1970: a key outlives processes.
"""

import re
from dataclasses import dataclass
from enum import Enum

from tidegate.lifecycle.key_text import ID_PREFIX
from tidegate.lifecycle.principal import ANONYMOUS, HIGHEST_PRIORITY, LOWEST_PRIORITY, Principal

MAX_NAME_CHARS = 64
MAX_MODELS = 64
MAX_MODEL_CHARS = 256
MAX_KEY_DAYS = 3650
_DAY_S = 86_400
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")

NUMBER_RANGES: dict[str, tuple[int, int]] = {
    "priority_min": (HIGHEST_PRIORITY, LOWEST_PRIORITY),
    "priority_max": (HIGHEST_PRIORITY, LOWEST_PRIORITY),
    "concurrency": (1, 1_000_000),
    "requests_per_minute": (1, 1_000_000_000),
    "tokens_per_minute": (1, 1_000_000_000_000),
    "deadline_max_ms": (1, 7 * _DAY_S * 1000),
}
"""Least and most of each number of a policy, both allowed."""


class KeyPolicyError(Exception):
    """A policy cannot be had. `field` is its name as in NUMBER_RANGES, or `name`, `models`, `routes`, `expires_at`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class KeyState(Enum):
    """What a key is at an instant. Only an active one lets anybody in."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """All that is kept of a key: whom it stands for, the digest of its text, and its instants; None for never."""

    principal: Principal
    digest: bytes
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None

    def state(self, wall: float) -> KeyState:
        """Returns the state at an instant. A key is refused from the very instant of its expiry."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        if self.expires_at is not None and self.expires_at <= wall:
            return KeyState.EXPIRED
        return KeyState.ACTIVE


def check_policy(
    principal: Principal, *, expires_at: float | None, wall: float, known_routes: frozenset[str] | None = None
) -> None:
    """Checks what a new key is to be. `known_routes` are those that need a key; None leaves routes unchecked.

    Raises KeyPolicyError for the first field that is out of its range; the message names the range.
    """
    _check_name(principal.name)
    _check_models(principal.models)
    if known_routes is not None:
        _check_routes(principal.routes, known_routes)
    numbers = {
        "priority_min": principal.priority_min,
        "priority_max": principal.priority_max,
        "concurrency": principal.quotas.concurrency,
        "requests_per_minute": principal.quotas.requests_per_minute,
        "tokens_per_minute": principal.quotas.tokens_per_minute,
        "deadline_max_ms": principal.deadline_max_ms,
    }
    for field, value in numbers.items():
        least, most = NUMBER_RANGES[field]
        if value is not None and not least <= value <= most:
            raise KeyPolicyError(field, f"{value} is not in the range {least} to {most}.")
    if principal.priority_min > principal.priority_max:
        raise KeyPolicyError(
            "priority_max", f"{principal.priority_max} is below the least priority, {principal.priority_min}."
        )
    _check_expiry(expires_at, wall)


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise KeyPolicyError(
            "name",
            f"a name is 1 to {MAX_NAME_CHARS} letters, digits and . _ @ - of ASCII, and begins with a letter or digit.",
        )
    if name.startswith(ID_PREFIX) or name == ANONYMOUS.name:
        raise KeyPolicyError("name", f"{name} would be taken for something else; names do not begin with {ID_PREFIX}.")


def _check_models(models: frozenset[str] | None) -> None:
    if models is None:
        return
    if not 1 <= len(models) <= MAX_MODELS:
        raise KeyPolicyError("models", f"{len(models)} models are not in the range 1 to {MAX_MODELS}.")
    for model in models:
        if not (0 < len(model) <= MAX_MODEL_CHARS and model.isprintable()):
            raise KeyPolicyError("models", f"a model's name has 1 to {MAX_MODEL_CHARS} printable characters.")


def _check_routes(routes: frozenset[str] | None, known: frozenset[str]) -> None:
    if routes is None:
        return
    unknown = sorted(routes - known)
    if unknown or not routes:
        what = f"{unknown[0]} is no route that needs a key." if unknown else "no route is named."
        raise KeyPolicyError("routes", f"{what} Routes are: {', '.join(sorted(known))}.")


def _check_expiry(expires_at: float | None, wall: float) -> None:
    if expires_at is not None and not wall < expires_at <= wall + MAX_KEY_DAYS * _DAY_S:
        raise KeyPolicyError("expires_at", f"a key expires after now, and within {MAX_KEY_DAYS} days.")
