"""GET /healthz and /health, and the admin listener's GET /readyz."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class Health(Struct, frozen=True, kw_only=True):
    """`alive`: the process answers. `ready`: a generating request would be taken now."""

    status: Literal["alive", "ready"]


class DegradedEngine(Struct, frozen=True, kw_only=True):
    """An engine that gets no requests, or few."""

    engine: str
    model: str
    condition: str


class Readiness(Struct, frozen=True, kw_only=True):
    """Requests are taken. `degraded`: engines without which they are; absent where there are none."""

    status: Literal["ready"] = "ready"
    degraded: list[DegradedEngine] | UnsetType = UNSET
