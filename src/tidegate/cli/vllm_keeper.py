"""VllmKeeper: vLLM in this process, in the shape of the supervisor of an engine of ours; what operators do to it."""

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts, Restarts
from tidegate.cli.engine_log import note_to
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.settings import Settings
from tidegate.cli.vllm_engine import make_vllm_watch
from tidegate.cli.watch_keeper import WatchKeeper
from tidegate.contract.admin import CacheDropped
from tidegate.contract.codec import encode_json
from tidegate.engines.vllm.watch import VllmWatch
from tidegate.errors import EngineUnavailable
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.serving.reply import WholeReply


class VllmKeeper(WatchKeeper):
    """The engine's process is vLLM's child, which is ours."""

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        logger: FilteringBoundLogger,
        poison: PoisonWatch | None = None,
    ) -> None:
        has_compiler = loaded.grammar.compiler is not None
        watch = make_vllm_watch(
            settings, loaded.served, has_compiler=has_compiler, take_note=note_to(logger), poison=poison
        )
        super().__init__(watch)
        self.acts: Acts = VllmActs(watch)


class VllmActs(Restarts):
    """See `Acts`."""

    def __init__(self, watch: VllmWatch) -> None:
        super().__init__(watch)
        self._watch = watch

    async def flush_cache(self) -> WholeReply:
        """Drops what vLLM keeps for reuse, which it does only at rest. It does not say how much that was: 0 is told."""
        if not await self._watch.carrier.reset_prefix_cache():
            raise EngineUnavailable("vLLM drops its cache only while no request runs.")
        return WholeReply(encode_json(CacheDropped(0, self._watch.engine.statistics().epoch)))
