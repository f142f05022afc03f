"""Which engines a server has: from `[engine]`, its replicas and `[[engines]]` tables to models and their engines;
and what an engine is that joins later.

Decides names, which engines serve one model together, and what replicas share of the machine. Engines whose tables
name the same first `served_model_name` (or, without one, the same source) form one pool. Pure.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.settings import EngineEntry, ModelSettings, Settings

ONLY_ENGINE = "engine"
_OWN_OF_ENGINE = frozenset({"source", "max_model_len"})
"""Settings of a model in which the engines of one pool may differ."""


class SpecError(Exception):
    """The engines do not go together; the message says which, and what to change."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine. `settings.model` and `settings.engine` are its own. It is of the table `entry`.

    `num_sharing` engines share its processors; what memory is free when it is made is for `num_to_come` of them, itself
    included.
    """

    name: str
    settings: Settings
    entry: str = ONLY_ENGINE
    num_sharing: int = 1
    num_to_come: int = 1


@dataclass(frozen=True, slots=True)
class ScaledEntry:
    """A table whose number of engines follows the load, between `least` and `most`."""

    entry: str
    settings: Settings
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One served model, and the engines that serve it."""

    engines: tuple[EngineSpec, ...]
    scaled: ScaledEntry | None = None

    @property
    def is_pool(self) -> bool:
        """Whether there are several engines, or may be."""
        return len(self.engines) > 1 or self.scaled is not None

    @property
    def settings(self) -> Settings:
        """What tokenizer, template, names and limits are read from."""
        return self.engines[0].settings

    @property
    def names(self) -> tuple[str, ...]:
        """The names that callers may use, as far as the settings say."""
        return self.settings.model.served_model_name or (_source(self.settings),)


def model_specs(settings: Settings) -> tuple[ModelSpec, ...]:
    """Returns the models in the order of their first engine. Raises SpecError."""
    entries = settings.engines or (EngineEntry(ONLY_ENGINE, settings.model, settings.engine),)
    groups: dict[str, list[EngineSpec]] = {}
    scaled: dict[str, ScaledEntry] = {}
    for entry in entries:
        own = msgspec.structs.replace(settings, model=entry.model, engine=entry.engine, engines=())
        model = entry.model.served_model_name[0] if entry.model.served_model_name else _source(own)
        groups.setdefault(model, []).extend(_replicas(entry.name, own))
        bounds = _scaled_entry(entry.name, own)
        if bounds is not None:
            scaled[model] = bounds
    specs = tuple(ModelSpec(tuple(engines), scaled.get(model)) for model, engines in groups.items())
    _check(specs)
    return specs


def _replicas(name: str, settings: Settings) -> Iterable[EngineSpec]:
    number, most = settings.engine.replicas, settings.engine.max_replicas
    if number == 1 and most is None:
        return [EngineSpec(name, settings, name)]
    sharing = most or number
    return [EngineSpec(f"{name}-{i + 1}", settings, name, sharing, sharing) for i in range(number)]


def _scaled_entry(name: str, settings: Settings) -> ScaledEntry | None:
    """Raises SpecError for bounds that no number of engines meets."""
    engine = settings.engine
    if engine.max_replicas is None:
        if engine.min_replicas is not None:
            raise SpecError(
                f"engine.min_replicas of {name} needs engine.max_replicas; a fixed number is engine.replicas."
            )
        return None
    least = engine.min_replicas or 1
    if not least <= engine.replicas <= engine.max_replicas:
        raise SpecError(
            f"{name} starts with engine.replicas = {engine.replicas} engines, which is not between "
            f"engine.min_replicas = {least} and engine.max_replicas = {engine.max_replicas}."
        )
    if settings.engine.url is not None:
        raise SpecError(f"{name} runs elsewhere and is not started here: engine.max_replicas is not for it.")
    if settings.pool.scale_down_tokens > settings.pool.scale_up_tokens:
        raise SpecError(
            f"pool.scale_down_tokens = {settings.pool.scale_down_tokens} is above pool.scale_up_tokens = "
            f"{settings.pool.scale_up_tokens}: the number of engines would never come to rest."
        )
    return ScaledEntry(name, settings, least, engine.max_replicas)


def further_engine(spec: ModelSpec, names: Collection[str], url: str | None = None) -> EngineSpec:
    """Returns one more engine of a model, with the smallest free number, while those of `names` live.

    It is as those of the table whose number follows the load, or else as the first engine. `url` says where it is.
    """
    entry = spec.scaled.entry if spec.scaled else spec.engines[0].entry
    name = next(name for i in range(len(names) + 1) if (name := f"{entry}-{i + 1}") not in names)
    most = max(len(names) + 1, spec.scaled.most if spec.scaled else 0)
    own = named_engine(spec, name, url)
    return EngineSpec(name, own.settings, entry, num_sharing=most, num_to_come=most - len(names))


def named_engine(spec: ModelSpec, name: str, url: str | None = None) -> EngineSpec:
    """Returns what the settings say of an engine: of its own, or of one that joined later and is at `url`."""
    own = next((one for one in spec.engines if one.name == name and url is None), None)
    if own is not None:
        return own
    entry, settings = (spec.scaled.entry, spec.scaled.settings) if spec.scaled else _first_entry(spec)
    if url is not None:
        engine = msgspec.structs.replace(settings.engine, url=url)
        settings = msgspec.structs.replace(settings, engine=engine)
    return EngineSpec(name, settings, entry)


def _first_entry(spec: ModelSpec) -> tuple[str, Settings]:
    return spec.engines[0].entry, spec.engines[0].settings


def _check(specs: tuple[ModelSpec, ...]) -> None:
    engine_names = [engine.name for spec in specs for engine in spec.engines]
    for name in engine_names:
        if engine_names.count(name) > 1:
            raise SpecError(f"Two engines have the name {name}: each needs one of its own.")
    model_names = [name for spec in specs for name in spec.names]
    for name in model_names:
        if model_names.count(name) > 1:
            raise SpecError(f"The model name {name} stands for two models: list the names of a pool in one order.")
    for spec in specs:
        first = spec.engines[0]
        if spec.scaled is not None and any(one.entry != spec.scaled.entry for one in spec.engines):
            raise SpecError(
                f"{spec.scaled.entry} has max_replicas and shares its model with another table: the number of engines "
                "follows the load where one table serves the model."
            )
        for other in spec.engines[1:]:
            differing = _differing(first.settings.model, other.settings.model)
            if differing:
                raise SpecError(
                    f"Engines {first.name} and {other.name} serve one model and differ in {differing}: "
                    "give both the same, or another served_model_name."
                )


def _differing(one: ModelSettings, other: ModelSettings) -> str:
    names = [name for name in one.__struct_fields__ if name not in _OWN_OF_ENGINE]
    return ", ".join(f"model.{name}" for name in names if getattr(one, name) != getattr(other, name))


def _source(settings: Settings) -> str:
    return settings.model.source or inner_settings(settings).engine.kind
