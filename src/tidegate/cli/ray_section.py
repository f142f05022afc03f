"""The section `[ray]`, and what an engine's own Ray settings may be. Reads what is written as NAME=NUMBER. Pure."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

OnRayKind = Literal["llama", "vllm", "scripted", "simulated"]
RayStrategy = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]


class RaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster that `--engine ray` places engines on ([docs/ray.md](ray.md))."""

    address: Annotated[
        str,
        Meta(description="local for a Ray of its own on this machine, auto for the one that runs here, or HOST:PORT"),
    ] = "local"
    namespace: Annotated[
        str, Meta(min_length=1, description="Ray's namespace: servers that share engines name one")
    ] = "tidegate"
    name: Annotated[str, Meta(min_length=1, description="beginning of the actors' names")] = "tidegate"
    detached: Annotated[
        bool, Meta(description="engines outlive this server, and servers with the same names share them")
    ] = False
    lease_s: Annotated[
        float, Meta(ge=0.5, le=3600, description="requests of a server that is silent for so long are aborted")
    ] = 10.0
    heartbeat_s: Annotated[float, Meta(ge=0.05, le=60, description="time between two signs of life")] = 1.0


class UnreadableAmount(Exception):
    """Text that is no NAME=NUMBER; the message quotes it."""


def read_amounts(text: str) -> dict[str, float]:
    """Returns amounts by name, from `NAME=NUMBER` with blanks between them. Raises UnreadableAmount."""
    amounts: dict[str, float] = {}
    for part in text.split():
        name, sign, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not sign or not name or not 0 <= value < float("inf") or name in amounts:
            raise UnreadableAmount(f"{part!r} is not NAME=NUMBER, or its name stands twice")
        amounts[name] = value
    if not amounts:
        raise UnreadableAmount("nothing is named")
    return amounts
