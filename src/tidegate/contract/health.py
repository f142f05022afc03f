"""GET /healthz and /health."""

from typing import Literal

from msgspec import Struct


class Health(Struct, frozen=True, kw_only=True):
    """`alive`: the process answers. `ready`: a generating request would be taken now."""

    status: Literal["alive", "ready"]
