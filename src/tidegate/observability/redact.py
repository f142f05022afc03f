"""What may stand in a log: text that cannot move a cursor, forge a line or hide another, and no secrets.

Decides by the name of a field (some are never shown), by the look of a value (keys and tokens are cut out), and by
kind (an object that is not plain data is shown as its type: its own words might quote a caller).

Does not know which words of an ordinary sentence are secret: whoever logs must not put prompts into messages.
"""

import re
from collections.abc import Mapping

MAX_TEXT_CHARS = 1000
MAX_ITEMS = 32
MAX_DEPTH = 4
REDACTED = "[redacted]"

SECRET_FIELDS = frozenset(
    {
        "api_key",
        "authorization",
        "body",
        "content",
        "cookie",
        "idempotency_key",
        "key",
        "messages",
        "password",
        "prompt",
        "secret",
        "text",
        "token",
    }
)

# C0, DEL, C1; soft hyphen, bidi marks, zero-width, line separators, bidi embeddings and isolates, BOM, interlinear
# annotations, surrogates, tags: everything that changes how the rest of a line looks.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_SECRET = re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+|\b(sk|pk|hf|tg)[-_][A-Za-z0-9_-]{8,}")

Plain = str | int | float | bool | list["Plain"] | dict[str, "Plain"] | None


def clean_text(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Returns `text` on one line, with unsafe characters spelled out, secrets cut out, and no longer than asked.

    The limit counts characters of `text`; what is cut off is counted at the end.
    """
    cut = text[:max_chars]
    cleaned = _UNSAFE.sub(_spell, _SECRET.sub(REDACTED, cut))
    return cleaned if len(cut) == len(text) else f"{cleaned}... ({len(text) - len(cut)} more)"


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean_value(name: str, value: object, depth: int = 0) -> Plain:
    """Returns what may be shown of the field `name`: plain data, bounded in depth, width and length."""
    if name.lower() in SECRET_FIELDS and value is not None:
        return REDACTED
    if isinstance(value, int) and abs(value) >= 2**63:
        return clean_text(hex(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, BaseException):
        return clean_text(f"{type(value).__name__}: {value}", 300)
    if depth < MAX_DEPTH:
        if isinstance(value, Mapping):
            items = list(value.items())[:MAX_ITEMS]
            return {clean_text(str(key)): clean_value(str(key), item, depth + 1) for key, item in items}
        if isinstance(value, list | tuple):
            return [clean_value("", item, depth + 1) for item in value[:MAX_ITEMS]]
    return f"<{type(value).__name__}>"
