"""The part of `tidegate doctor` that looks at an engine on another machine: asks it what `serve` would ask."""

import asyncio

from tidegate.cli.finding import Finding, ok, problem
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_engine import look_once
from tidegate.cli.settings import Settings
from tidegate.engines.remote.ask import EngineAway, EngineUnfit
from tidegate.engines.remote.dialect import Introduction, Recognition
from tidegate.inference.model_info import ModelInfo

_SUBJECT = "engine"


def look_at_remote_engine(settings: Settings, loaded: LoadedModel, *, is_thorough: bool) -> Finding:
    """Whether the engine answers and is one that would be served. Thoroughly: a few tokens are generated as well."""
    has_compiler = loaded.grammar.compiler is not None
    try:
        found = asyncio.run(look_once(settings, loaded.served, has_compiler=has_compiler, is_thorough=is_thorough))
    except EngineAway as error:
        advice = "start it, or correct engine.url; `serve` waits for it"
        return problem(_SUBJECT, f"at {settings.engine.url}: {error}", advice)
    except (EngineUnfit, LoadError) as error:
        return problem(_SUBJECT, f"at {settings.engine.url}: {error}", "docs/remote_engines.md says what is needed")
    return ok(_SUBJECT, f"at {settings.engine.url}: {_describe(found)}")


def _describe(found: Introduction | Recognition) -> str:
    if isinstance(found, Recognition):
        return ", ".join(f"{name} {value}" for name, value in found.identity if value)
    return "; ".join([describe_model(found.model), *found.notes])


def describe_model(model: ModelInfo) -> str:
    """Returns what an engine serves, in one phrase."""
    grammar = f"constraints by {model.grammar_backend}" if model.grammar_backend else "no constraints"
    words = (
        f"{model.build}, sequences of up to {model.max_model_len:,} tokens, {model.max_sequences} at once, {grammar}"
    )
    unserved = f"; not served: {', '.join(model.unserved_fields)}" if model.unserved_fields else ""
    return words + unserved
