"""SecretsOut: what a report shows of a server's texts: without credentials, and such that it can be encoded.

Exchanges of a run are redacted before they are judged (`redaction.py`); this is the same once more, for reports that
are made of anything else.
"""

from collections.abc import Iterable

from tidegate.conformance.wire.redaction import Redaction


class SecretsOut:
    """Text in, the same text without the secrets out."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        self._redaction = Redaction(secrets)

    def of_text(self, text: str) -> str:
        """Returns the text without secrets; halves of surrogate pairs are spelled out."""
        return self._redaction.of_text(text).encode("utf-8", "backslashreplace").decode("utf-8")

    def of_bytes(self, data: bytes) -> bytes:
        """Returns the bytes without secrets."""
        return self._redaction.of_request(data)
