"""What an engine is where Ray places it: its tokenizer, options and texts are those of what runs inside. Pure."""

import msgspec

from tidegate.cli.settings import Settings

RAY = "ray"


def is_on_ray(settings: Settings) -> bool:
    """Whether Ray places the engine."""
    return settings.engine.kind == RAY


def inner_settings(settings: Settings) -> Settings:
    """Returns the settings with the kind of engine that computes; the same where nothing is around it."""
    if not is_on_ray(settings):
        return settings
    engine = msgspec.structs.replace(settings.engine, kind=settings.engine.ray_engine)
    return msgspec.structs.replace(settings, engine=engine)
