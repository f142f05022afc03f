"""ReachedFleet: the engines of a server as one of its worker processes has them: connected to, kept alive elsewhere."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tidegate.cli.engine_specs import ModelSpec
from tidegate.cli.model_engines import ModelSite, join_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.link import EngineLink
from tidegate.lifecycle.poison import PoisonWatch


class ReachedFleet:
    """Belongs to one event loop. `sockets` say where each engine is, by its name. `now`: monotonic clock."""

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        loaded: Sequence[LoadedModel],
        sockets: Mapping[str, str],
        now: Callable[[], float],
    ) -> None:
        self._links: list[EngineLink] = []
        sites = []
        report = asyncio.get_running_loop().call_exception_handler
        for spec, model in zip(specs, loaded, strict=True):
            poison, parts = PoisonWatch(), {}
            for one in spec.engines:
                engine = parts[one.name] = LocalEngine(report, poison=poison)
                self._links.append(EngineLink(engine, Path(sockets[one.name])))
            sites.append(ModelSite(spec.settings, model, join_engines(parts, spec.settings.pool, now)))
        self.sites = tuple(sites)

    def start(self) -> None:
        """Begins to dial."""
        for link in self._links:
            link.start()

    async def aclose(self) -> None:
        """Hangs up. Open requests fail. Idempotent."""
        for link in self._links:
            await link.aclose()
