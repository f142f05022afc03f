"""Whether the settings choose an engine on another machine. Imports nothing that such an engine needs."""

from tidegate.cli.settings import Settings

REMOTE_KINDS = frozenset({"sglang", "vllm-http"})


def is_remote(settings: Settings) -> bool:
    """Whether the engine runs elsewhere: it is found, and not started."""
    return settings.engine.kind in REMOTE_KINDS
