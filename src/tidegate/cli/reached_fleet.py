"""ReachedFleet: the engines of a server as one of its worker processes has them: connected to, kept alive elsewhere."""

from collections.abc import Mapping, Sequence

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_specs import ModelSpec
from tidegate.cli.model_engines import ModelSite, join_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.worker_engine import make_worker_engine
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.system import SystemClock


class ReachedFleet:
    """Belongs to one event loop. `sockets` say where each engine of this machine is, by its name."""

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        loaded: Sequence[LoadedModel],
        sockets: Mapping[str, str],
        logger: FilteringBoundLogger,
    ) -> None:
        ties, sites = [], []
        for spec, model in zip(specs, loaded, strict=True):
            poison, parts = PoisonWatch(), {}
            for one in spec.engines:
                tie = make_worker_engine(one, sockets.get(one.name), model, logger, poison)
                parts[one.name] = tie.engine
                ties.append(tie)
            sites.append(ModelSite(spec.settings, model, join_engines(parts, spec.settings.pool, SystemClock().now)))
        self._ties = ties
        self.sites = tuple(sites)

    async def start(self) -> None:
        """Begins to dial."""
        for tie in self._ties:
            await tie.start()

    async def aclose(self) -> None:
        """Hangs up. Open requests fail. Idempotent."""
        for tie in self._ties:
            await tie.aclose()
