"""Text that a server sent, made safe to look at: what cannot be seen is spelled out, so that nothing hides or acts.

Terminals obey control characters, browsers turn text around, XML refuses some characters at all. Escapes look like
those of JSON: `\\u001b`. A backslash that was sent stays as it is: what is shown is for eyes, not for parsers.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters, marks of direction, fillers of no width, line separators, tags, halves of pairs."""

_SHORT = {"\r": "\\r", "\n": "\\n", "\t": "\\t"}


def spell(character: str) -> str:
    """Returns the escape of one character: `\\r`, `\\u202e`, or `\\U000e0041` beyond 16 bits."""
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str, *, keeps: str = "") -> str:
    """Returns the text with all that is unseen spelled out, but the characters in `keeps`."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keeps else spell(found[0]), text)


def split_unseen(text: str, *, keeps: str = "\n\t") -> list[tuple[bool, str]]:
    """Returns the parts of a text in order; True marks one that is spelled out."""
    parts: list[tuple[bool, str]] = []
    end = 0
    for found in _UNSEEN.finditer(text):
        if found[0] in keeps:
            continue
        if found.start() > end:
            parts.append((False, text[end : found.start()]))
        parts.append((True, spell(found[0])))
        end = found.end()
    if end < len(text):
        parts.append((False, text[end:]))
    return parts


def one_line(text: str, max_chars: int) -> str:
    """Returns the text on one line, everything unseen spelled out, at most `max_chars` long; cut with an ellipsis."""
    line = visible(text.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"
