"""What a person is told about speculation: at the start, and by `tidegate doctor`."""

from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.settings import Settings


def speculation_text(settings: Settings) -> str:
    """Returns how many tokens are guessed and from what; empty where nothing is guessed."""
    if not _is_guessing(settings):
        return ""
    engine = settings.engine
    return f"guessing up to {engine.max_draft_tokens} tokens ahead ({engine.speculative})"


def sameness_text(settings: Settings) -> str:
    """Returns one sentence where guesses may change what the model says; empty where they cannot."""
    if not _is_guessing(settings) or inner_settings(settings).engine.kind != "llama" or settings.engine.repeatable:
        return ""
    return (
        "with guesses, text may differ from text without them where two tokens are nearly as likely; "
        "engine.repeatable = true makes both the same, and is slower"
    )


def _is_guessing(settings: Settings) -> bool:
    return settings.engine.speculative != "off" and inner_settings(settings).engine.kind != "scripted"
