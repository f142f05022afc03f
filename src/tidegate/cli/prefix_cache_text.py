"""What a person is told about the prefix cache: at the start, and by `tidegate doctor`."""

from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.remote_settings import is_remote
from tidegate.cli.settings import Settings
from tidegate.inference.model_info import ModelInfo


def prefix_cache_text(settings: Settings, model: ModelInfo | None) -> str:
    """Returns one sentence where no beginnings of prompts are kept although the settings ask for it; else nothing."""
    settings = inner_settings(settings)
    is_wanted = settings.engine.prefix_cache and settings.engine.kind != "scripted" and not is_remote(settings)
    if model is None or not is_wanted or model.has_prefix_cache or not model.generates:
        return ""
    return "no prefix cache: the memory of this model cannot be cut and shared"
