"""VllmKeeper: vLLM in this process, in the shape of the supervisor of an engine of ours; what operators do to it."""

import asyncio
import contextlib

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.settings import Settings
from tidegate.cli.vllm_engine import make_vllm_watch
from tidegate.contract.admin import CacheDropped, EngineRestarted
from tidegate.contract.codec import encode_json
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.start_failed import RemoteStartFailed
from tidegate.engines.vllm.watch import VllmWatch
from tidegate.errors import EngineUnavailable
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.serving.reply import WholeReply


class VllmKeeper:
    """Belongs to one event loop. Other server processes cannot reach the engine: it has no socket."""

    socket_path: None = None

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        logger: FilteringBoundLogger,
        poison: PoisonWatch | None = None,
    ) -> None:
        self._watch = make_vllm_watch(
            settings,
            loaded.served,
            has_compiler=loaded.grammar.compiler is not None,
            take_note=lambda note: logger.warning("engine note", note=note),
            poison=poison,
        )
        self.acts: Acts = VllmActs(self._watch)

    @property
    def engine(self) -> RemoteEngine:
        return self._watch.engine

    @property
    def process_id(self) -> int | None:
        """vLLM's own process; None between two, and where it has none on this machine."""
        return self._watch.engine.process_id

    async def start(self) -> None:
        """Begins to start vLLM."""
        self._watch.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises RemoteStartFailed when it was given up."""
        await self._watch.wait_ready()

    async def aclose(self) -> None:
        """Ends vLLM. Open requests fail. Idempotent."""
        await self._watch.aclose()


class VllmActs:
    """See `Acts`."""

    def __init__(self, watch: VllmWatch) -> None:
        self._watch = watch

    async def flush_cache(self) -> WholeReply:
        """Drops what vLLM keeps for reuse, which it does only at rest. It does not say how much that was: 0 is told."""
        if not await self._watch.carrier.reset_prefix_cache():
            raise EngineUnavailable("vLLM drops its cache only while no request runs.")
        return WholeReply(encode_json(CacheDropped(0, self._watch.engine.statistics().epoch)))

    async def restart_engine(self, wait_s: float, *, spares_others: bool = False) -> WholeReply:  # noqa: ARG002
        """Ends vLLM's process and starts the next one; joins a start that is under way."""
        watch, epoch = self._watch, self._watch.coming_epoch
        watch.restart()
        with contextlib.suppress(TimeoutError, RemoteStartFailed):
            async with asyncio.timeout(wait_s):
                while watch.engine.statistics().epoch < epoch:
                    await watch.wait_next()
        status = watch.engine.statistics()
        if status.is_ready and status.epoch >= epoch:
            return WholeReply(encode_json(EngineRestarted("ready", status.epoch)))
        return WholeReply(encode_json(EngineRestarted("restarting", epoch)), status=202)

    async def aclose(self) -> None:
        return None
