"""What the server can do, found out before the cases run: which model it serves, and each Capability."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.capability import Capability
from tidegate.conformance.exchange import Exchange
from tidegate.conformance.json_text import at


@dataclass(frozen=True, slots=True)
class Probed:
    """`capabilities`: what was found; `absent`: why the others were not; `found_by`: how it was seen that one is there.
    `identity`: what the server says of itself, like `server`: its Server header.
    """

    model: str
    capabilities: frozenset[Capability]
    absent: Mapping[Capability, str]
    is_scripted: bool
    has_contract: bool
    found_by: Mapping[Capability, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)


Asking = Callable[[Ask], Awaitable[Exchange]]


class NoServerError(Exception):
    """Nothing that can be asked answers there; the message says what was tried."""


async def probe(asking: Asking, model: str) -> Probed:
    """Asks what the server can do. Raises NoServerError."""
    models = await asking(Ask(method="GET", path="/models"))
    if models.status is None:
        raise NoServerError(f"GET {models.url}: {models.ending.value} ({models.detail})")
    name = model or at(models.json, "data", 0, "id")
    if not isinstance(name, str):
        raise NoServerError(f"GET {models.url} names no model; give --model")
    contract = await asking(Ask(method="GET", path="/contract"))
    has_contract = contract.status == 200 and at(contract.json, "object") == "contract"
    parts = at(contract.json, "models", 0, "revision_parts", "engine")
    is_scripted = isinstance(parts, str) and parts.startswith("scripted")
    found = frozenset(Capability)  # every probe of its own: to come
    health = await asking(Ask(method="GET", path="/health", place=Place.ROOT))
    del health
    identity = {"server": models.headers.get("server", "")}
    return Probed(name, found, {}, is_scripted, has_contract, identity=identity)
