"""Whether the settings choose an engine on another machine, or vLLM in this one, and which of them then do nothing.

Imports nothing that such an engine needs.
"""

import msgspec

from tidegate.cli.inner_engine import inner_settings, is_on_ray
from tidegate.cli.load_error import LoadError
from tidegate.cli.settings import EngineSettings, Settings

REMOTE_KINDS = frozenset({"sglang", "vllm-http"})
_BOTH = frozenset({"kind", "stall_timeout_s", "restart_wait_s", "max_sequences", "block_tokens"})
_RAY_ONLY = frozenset(name for name in EngineSettings.__struct_fields__ if name.startswith("ray_"))
_NOT_ON_RAY = frozenset({"calibrate"})
_NUMBERS = frozenset({"min_replicas", "max_replicas"})
_REMOTE_ONLY = frozenset({"url", "api_key_file", "revision", "health_interval_s"})
_VLLM = (_BOTH - {"block_tokens"}) | {"revision", "health_interval_s", "prefix_cache", "options", "replicas"}


def is_remote(settings: Settings) -> bool:
    """Whether the engine runs elsewhere: it is found, and not started."""
    return settings.engine.kind in REMOTE_KINDS


def is_vllm(settings: Settings) -> bool:
    """Whether vLLM runs in this process."""
    return settings.engine.kind == "vllm"


def reads_folder(settings: Settings) -> bool:
    """Whether tokenizer and template are files of a folder in Hugging Face's format."""
    return is_remote(settings) or is_vllm(inner_settings(settings))


def check_further(settings: Settings, url: str | None) -> None:
    """Raises LoadError for an engine that shall join while the server runs, and is of a kind that does not join so."""
    if is_remote(settings) and url is None:
        raise LoadError(f"The {settings.engine.kind} engine runs elsewhere: say where the further one is, with url.")
    if not is_remote(settings) and url is not None:
        raise LoadError(f"The {settings.engine.kind} engine is started here: url is not for it.")


def idle_settings(settings: Settings) -> list[str]:
    """Returns the settings that were changed and have no effect on the kind of engine that was chosen."""
    if is_vllm(inner_settings(settings)):
        acting = _VLLM | _RAY_ONLY | _NUMBERS if is_on_ray(settings) else _VLLM
    elif is_remote(settings):
        acting = _BOTH | _REMOTE_ONLY
    else:
        acting = frozenset(EngineSettings.__struct_fields__) - _REMOTE_ONLY - {"options"}
    acting -= _NOT_ON_RAY if is_on_ray(settings) else _RAY_ONLY
    plain = EngineSettings()
    idle = [
        f"engine.{field.name}"
        for field in msgspec.structs.fields(EngineSettings)
        if field.name not in acting and getattr(settings.engine, field.name) != getattr(plain, field.name)
    ]
    if settings.model.tokenizer is not None and not reads_folder(settings):
        idle.append("model.tokenizer")
    return idle


def idle_text(settings: Settings) -> str | None:
    """Returns one sentence for an operator; None where every setting does something."""
    idle = idle_settings(settings)
    if not idle:
        return None
    verb = "has" if len(idle) == 1 else "have"
    return f"{', '.join(idle)} {verb} no effect on the {settings.engine.kind} engine"
