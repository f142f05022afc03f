"""Quoting a caller's input in an error message: at most 64 characters of it (CONTRACT.md section 3)."""

MAX_QUOTED_CHARACTERS = 64


def quote(text: str) -> str:
    """Returns `text` in single quotes, cut to 64 characters, with control characters escaped."""
    is_cut = len(text) > MAX_QUOTED_CHARACTERS
    shown = text[:MAX_QUOTED_CHARACTERS]
    escaped = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in shown)
    return f"'{escaped}'" + ("..." if is_cut else "")
