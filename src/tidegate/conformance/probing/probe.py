"""What the server can do, found out before the cases run: which model it serves, and each Capability.

A few small requests (`probe_table.py`), at most `jobs` at once. A server that is busy is asked again, a little later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from tidegate.conformance.ask import Ask
from tidegate.conformance.judge import Evidence
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probe_decisions import COULD_NOT_TELL
from tidegate.conformance.probing.probe_table import PROBE_TIMEOUT_S, PROBES, Probe
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.probing.site import Site
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

BUSY_STATUSES = (429, 503)
MAX_ATTEMPTS = 3
MAX_WAIT_S = 2.0


Asking = Callable[[Ask, Evidence], Awaitable[Exchange]]
"""Sends an ask; the evidence is what earlier asks of the same probe brought."""
Found = Mapping[Capability, str | None]
"""None: it is there; else why not."""
Seen = tuple[Exchange, ...]


class NoServerError(Exception):
    """Nothing that can be asked answers there; the message says what was tried."""


async def probe(asking: Asking, model: str, site: Site, *, jobs: int = 4, named: Callable[[str, bool], None]) -> Probed:
    """Asks what the server can do. `model`: the one to ask; empty: the first that the server names. `named` is told
    the model, and whether its engine is a scripted one, before anything is asked of it. Raises NoServerError.
    """
    models, contract = await asyncio.gather(
        asking(Ask(name="models", method="GET", path="/models"), {}),
        asking(Ask(name="contract", method="GET", path="/contract"), {}),
    )
    if models.status is None:
        raise NoServerError(f"GET {models.url}: {models.ending.value} {models.detail}".rstrip())
    name = model or _first_model(models)
    document = contract.json if contract.status == 200 and at(contract.json, "object") == "contract" else None
    has_contract = document is not None or "tidegate-contract" in models.headers
    site = replace(site, has_contract=has_contract, is_scripted=_is_scripted(document))
    named(name, site.is_scripted)
    probing = _Probing(asking, site, asyncio.Semaphore(jobs))
    found, seen = await probing.all(PROBES)
    present = frozenset(capability for capability, reason in found.items() if reason is None)
    return Probed(
        name,
        present,
        {capability: reason for capability, reason in found.items() if reason is not None},
        site.is_scripted,
        has_contract,
        {capability: _describe(seen[capability]) for capability in present if seen[capability]},
        _identity([models, *(exchange for exchanges in seen.values() for exchange in exchanges)]),
    )


def _describe(exchanges: Sequence[Exchange]) -> str:
    return "; ".join(
        f"{one.method} {one.url} answers {one.status if one.status is not None else one.ending.value}"
        for one in exchanges
    )


def _first_model(models: Exchange) -> str:
    name = at(models.json, "data", 0, "id")
    if isinstance(name, str) and name:
        return name
    if models.status in (401, 403):
        raise NoServerError(f"GET {models.url} answers {models.status}: give --api-key")
    raise NoServerError(f"GET {models.url} answers {models.status} and names no model: give --model")


def _is_scripted(document: object) -> bool:
    """Whether the contract says that the engine plays what a request scripts."""
    endpoints = at(document, "models", 0, "endpoints")
    known = endpoints if isinstance(endpoints, list) else []
    return any(at(endpoint, "fields", "x_script", "use") == "acts" for endpoint in known)


def _identity(exchanges: Sequence[Exchange]) -> dict[str, str]:
    identity: dict[str, str] = {}
    for exchange in exchanges:
        said = {
            "server": exchange.headers.get("server"),
            "contract": exchange.headers.get("tidegate-contract"),
            "revision": exchange.headers.get("tidegate-served-revision"),
            "fingerprint": at(exchange.json, "system_fingerprint"),
            "owned_by": at(exchange.json, "data", 0, "owned_by"),
        }
        for name, value in said.items():
            if isinstance(value, str) and value:
                identity.setdefault(name, value[:200])
    return identity


class _Probing:
    """Sends the probes of one site."""

    def __init__(self, asking: Asking, site: Site, slots: asyncio.Semaphore) -> None:
        self._asking = asking
        self._site = site
        self._slots = slots

    async def all(self, probes: Sequence[Probe]) -> tuple[Found, Mapping[Capability, Seen]]:
        """Returns what was found of each, and the exchanges: first those that need no other, then the rest."""
        found: dict[Capability, str | None] = {}
        seen: dict[Capability, Seen] = {}
        for is_late in (False, True):
            group = [probe for probe in probes if (probe.after is not None) is is_late]
            for probe, (reason, exchanges) in zip(
                group, await asyncio.gather(*(self._one(probe, found) for probe in group)), strict=True
            ):
                found[probe.capability] = reason
                seen[probe.capability] = exchanges
        return found, seen

    async def _one(self, probe: Probe, found: Found) -> tuple[str | None, Seen]:
        if probe.after is not None and (lacking := found[probe.after]) is not None:
            return f"needs {probe.after.value}: {lacking}", ()
        if probe.skipped is not None and (reason := probe.skipped(self._site)) is not None:
            return reason, ()
        exchanges: list[Exchange] = []
        for wave in sorted({ask.wave for ask in probe.asks}):
            evidence = {exchange.ask: (exchange,) for exchange in exchanges}
            exchanges += await asyncio.gather(*(self._ask(ask, evidence) for ask in probe.asks if ask.wave == wave))
        try:
            return probe.decide(self._site, tuple(exchanges)), tuple(exchanges)
        except Exception as error:  # an answer that no decision foresaw must not end the run
            return f"{COULD_NOT_TELL}: {type(error).__name__}: {error}", tuple(exchanges)

    async def _ask(self, ask: Ask, evidence: Evidence) -> Exchange:
        ask = replace(ask, manner=replace(ask.manner, timeout_s=ask.manner.timeout_s or PROBE_TIMEOUT_S))
        for attempt in range(1, MAX_ATTEMPTS + 1):
            async with self._slots:
                exchange = await self._asking(ask, evidence)
            if exchange.status not in BUSY_STATUSES or attempt == MAX_ATTEMPTS:
                break
            await asyncio.sleep(_wait_s(exchange))
        return exchange


def _wait_s(exchange: Exchange) -> float:
    told = exchange.headers.get("retry-after", "")
    return min(float(told), MAX_WAIT_S) if told.isascii() and told.isdigit() else MAX_WAIT_S / 4
