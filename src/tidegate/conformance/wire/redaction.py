"""Redaction: takes the caller's credentials out of the bytes of exchanges, before anything is judged or kept.

In requests a credential becomes `REDACTED`. In responses it becomes as many bytes as it had, so that every length that
the response declares stays true; one that is cut by borders of chunks is found too. A check sees the same bytes as a
recording holds: an echoed credential shows as `REDACTED`. Pure.
"""

import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

REDACTED = b"REDACTED"
MIN_SECRET_CHARS = 8
"""A shorter one stands in many texts by chance, and protects nothing; it is taken out of request headers only."""
_CHUNK_BORDER = rb"(?:\r\n[0-9A-Fa-f]{1,8}(?:;[^\r\n]{0,64})?\r\n)?"


class Redaction:
    """Takes some secrets out; spelled as they are, as in JSON, and as in an address."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        spellings: set[bytes] = set()
        for secret in secrets:
            if secret is not None and len(secret) >= MIN_SECRET_CHARS:
                for text in (secret, json.dumps(secret)[1:-1], quote(secret, safe="")):
                    spellings.add(text.encode("utf-8", "surrogatepass"))
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._patterns = [
            re.compile(_CHUNK_BORDER.join(re.escape(bytes([byte])) for byte in spelling))
            for spelling in self._spellings
        ]

    def of_request(self, data: bytes) -> bytes:
        """Returns a request without the secrets."""
        for spelling in self._spellings:
            data = data.replace(spelling, REDACTED)
        return data

    def of_text(self, text: str) -> str:
        """Returns the text without the secrets."""
        return self.of_request(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def of_pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Returns the pieces of a response, of the same lengths, without the secrets."""
        whole = b"".join(pieces)
        masked = whole
        for spelling, pattern in zip(self._spellings, self._patterns, strict=True):
            if spelling[:1] in masked:
                masked = pattern.sub(lambda found: _mask(found[0]), masked)
        if masked == whole:
            return list(pieces)
        parts: list[bytes] = []
        at = 0
        for piece in pieces:
            parts.append(masked[at : at + len(piece)])
            at += len(piece)
        return parts


def _mask(found: bytes) -> bytes:
    """Returns as many bytes; borders of chunks stay."""
    masked = bytearray()
    num_masked = 0
    for part in re.split(rb"(\r\n[0-9A-Fa-f]{1,8}(?:;[^\r\n]{0,64})?\r\n)", found):
        if part.startswith(b"\r\n"):
            masked += part
            continue
        for _ in part:
            masked.append(REDACTED[num_masked] if num_masked < len(REDACTED) else ord("."))
            num_masked += 1
    return bytes(masked)
