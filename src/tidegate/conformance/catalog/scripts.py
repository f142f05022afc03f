"""What scripted engines are to play (`x_script`)."""

from typing import Any

CALL_FORMAT = "hermes"
"""The family in whose notation scripts write calls: it allows text beside them, and several."""
REASONING_FORMAT = "qwen3"
_PIECE_CHARS = 3


def plays(text: str, *, piece_chars: int = _PIECE_CHARS, **more: Any) -> dict[str, Any]:
    """Returns a script of the text, `piece_chars` characters a token; `more` are its further members."""
    pieces = [text[start : start + piece_chars] for start in range(0, len(text), piece_chars)]
    return {"pieces": [piece.encode().hex() for piece in pieces], **more}


def plays_calls(*calls: tuple[str, str], before: str = "", piece_chars: int = _PIECE_CHARS) -> dict[str, Any]:
    """Returns a script that writes some text and then calls, each a name and its arguments as JSON text."""
    written = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>' for name, arguments in calls
    ]
    return plays(before + "\n".join(written), piece_chars=piece_chars, parsers={"tool": CALL_FORMAT})


def plays_reasoning(reasoning: str, text: str, **more: Any) -> dict[str, Any]:
    """Returns a script of a model that reasons before it answers."""
    return plays(f"<think>{reasoning}</think>{text}", parsers={"reasoning": REASONING_FORMAT}, **more)
