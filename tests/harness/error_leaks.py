"""What no error text may hold: tracebacks, file paths, addresses of objects, words of libraries (ERR-4)."""

import re

LEAKS = re.compile(
    r"Traceback|File \\?\"|\.py\b|site-packages|(?<![\w.])/(?:usr|home|root|tmp|opt|var|etc|proc|srv|mnt|Users)/"
    r"|\b0x[0-9a-fA-F]{4,}|<[\w.]+ object|\bmsgspec\b|\basyncio\b|\bjinja2\b|\buvloop\b|\bgranian\b|\bsqlite3?\b"
)


def find_leak(text: bytes, sent: bytes = b"") -> str | None:
    """Returns the first leak in an error's text that the caller had not sent itself."""
    for found in LEAKS.finditer(text.decode("utf-8", "replace")):
        if found[0].encode() not in sent:
            return found[0]
    return None
