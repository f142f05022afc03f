"""Which engines a server has: from `[engine]`, its replicas and `[[engines]]` tables to models and their engines.

Decides names, which engines serve one model together, and what replicas share of the machine. Engines whose tables
name the same first `served_model_name` (or, without one, the same source) form one pool. Pure.
"""

from collections.abc import Iterable
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
    """One engine. `settings.model` and `settings.engine` are its own. `num_sharing` engines share its machine."""

    name: str
    settings: Settings
    num_sharing: int = 1


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One served model, and the engines that serve it."""

    engines: tuple[EngineSpec, ...]

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
    for entry in entries:
        own = msgspec.structs.replace(settings, model=entry.model, engine=entry.engine, engines=())
        model = entry.model.served_model_name[0] if entry.model.served_model_name else _source(own)
        groups.setdefault(model, []).extend(_replicas(entry.name, own))
    specs = tuple(ModelSpec(tuple(engines)) for engines in groups.values())
    _check(specs)
    return specs


def _replicas(name: str, settings: Settings) -> Iterable[EngineSpec]:
    number = settings.engine.replicas
    if number == 1:
        return [EngineSpec(name, settings)]
    return [EngineSpec(f"{name}-{i + 1}", settings, num_sharing=number) for i in range(number)]


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
