"""VllmActor: vLLM in an engine actor. Runs on the machine that Ray has chosen; the model's folder is read there too.

What it is made from are the settings of a server that concern vLLM, and nothing else: servers that differ in the rest
share one engine.
"""

import logging
from pathlib import Path

import msgspec

from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import load_model
from tidegate.cli.settings import (
    AdmissionSettings,
    EngineSettings,
    GrammarSettings,
    ModelSettings,
    ServerSettings,
    Settings,
)
from tidegate.cli.vllm_engine import make_vllm_watch
from tidegate.engine.port import WatchedEngine
from tidegate.engines.ray.actor_spec import HostedEngineSpec
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.hosted_engine import HostedEngine, UnknownKind
from tidegate.engines.vllm.installed_vllm import InstalledVllm
from tidegate.engines.vllm.library import Library
from tidegate.engines.vllm.watch import VllmWatch

_OF_SERVERS = ("replicas", "min_replicas", "max_replicas")

_log = logging.getLogger(__name__)


class VllmInActor(msgspec.Struct, frozen=True):
    """`source`, `tokenizer` and `max_model_len` are those of `[model]`; `engine` is without what is the server's."""

    source: str | None
    tokenizer: str | None
    max_model_len: int | None
    engine: EngineSettings
    grammar: GrammarSettings
    has_priorities: bool
    drain_s: float


class VllmActor(EngineActor):
    """The class that Ray makes an actor of where vLLM is inside."""

    def make_hosted(self, spec: HostedEngineSpec) -> HostedEngine:
        """See `EngineActor.make_hosted`. Raises UnknownKind where vLLM or its model is not on this machine."""
        settings = vllm_settings(spec)
        try:
            loaded = load_model(settings)
            watch = make_vllm_watch(
                settings,
                loaded.served,
                has_compiler=loaded.grammar.compiler is not None,
                take_note=_log.warning,
                library=self.make_library(),
            )
        except LoadError as error:
            raise UnknownKind(str(error)) from error
        return HostedVllm(watch)

    def make_library(self) -> Library:
        """Returns vLLM. The main program here is Ray's, which does nothing when it is imported again."""
        return InstalledVllm(checks_main=False)


class HostedVllm:
    """See `HostedEngine`."""

    def __init__(self, watch: VllmWatch) -> None:
        self._watch = watch

    @property
    def engine(self) -> WatchedEngine:
        return self._watch.engine

    async def start(self) -> None:
        self._watch.start()

    async def restart(self) -> None:
        await self._watch.restart()

    async def wait_ready(self) -> None:
        await self._watch.wait_ready()

    async def aclose(self) -> None:
        await self._watch.aclose()


def vllm_in_actor(settings: Settings) -> msgspec.Raw:
    """Returns what a `HostedEngineSpec` of vLLM says in `settings`."""
    plain = EngineSettings()
    others = {name: getattr(plain, name) for name in plain.__struct_fields__ if name.startswith("ray_")}
    others |= {name: getattr(plain, name) for name in _OF_SERVERS}
    model = settings.model
    told = VllmInActor(
        source=_folder(model.source),
        tokenizer=_folder(model.tokenizer),
        max_model_len=model.max_model_len,
        engine=msgspec.structs.replace(settings.engine, **others),
        grammar=settings.grammar,
        has_priorities=settings.admission.policy == "priority",
        drain_s=settings.server.drain_timeout_s,
    )
    return msgspec.Raw(msgspec.json.encode(told, order="deterministic"))


def _folder(name: str | None) -> str | None:
    """The program in the actor stands in another folder."""
    path = None if name is None else Path(name).expanduser()
    return str(path.absolute()) if path is not None and path.is_dir() else name


def vllm_settings(spec: HostedEngineSpec) -> Settings:
    """Returns the settings of a server that would have the same vLLM in its own process."""
    told = msgspec.json.decode(spec.settings, type=VllmInActor)
    return Settings(
        server=ServerSettings(drain_timeout_s=told.drain_s),
        model=ModelSettings(source=told.source, tokenizer=told.tokenizer, max_model_len=told.max_model_len),
        engine=told.engine,
        grammar=told.grammar,
        admission=AdmissionSettings(policy="priority" if told.has_priorities else "fcfs"),
    )
