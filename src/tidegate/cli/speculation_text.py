"""What a person is told about speculation: at the start, and by `tidegate doctor`."""

from tidegate.cli.settings import Settings


def speculation_text(settings: Settings) -> str:
    """Returns how many tokens are guessed and from what; empty where nothing is guessed."""
    engine = settings.engine
    if engine.speculative == "off" or engine.kind == "scripted":
        return ""
    return f"guessing up to {engine.max_draft_tokens} tokens ahead ({engine.speculative})"
