"""The error object, the same on every path (CONTRACT.md section 3)."""

from msgspec import UNSET, Struct, UnsetType


class LimitBody(Struct, frozen=True, kw_only=True):
    """Which limit fired. `scope` is `request`, `key` or `server`."""

    name: str
    value: int
    actual: int
    scope: str


class ErrorObject(Struct, frozen=True, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str
    limit: LimitBody | UnsetType = UNSET


class ErrorBody(Struct, frozen=True, kw_only=True):
    error: ErrorObject
