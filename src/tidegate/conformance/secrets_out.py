"""SecretsOut: takes the caller's credentials out of what a report shows: servers repeat them in their errors."""

from collections.abc import Iterable

REDACTED = "REDACTED"
MIN_SECRET_CHARS = 4
"""A shorter one stands in many texts by chance, and protects nothing."""


class SecretsOut:
    """Text in, the same text without the secrets out. Longer secrets go first: one may hold another."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        kept = {secret for secret in secrets if secret is not None and len(secret) >= MIN_SECRET_CHARS}
        self._secrets = sorted(kept, key=len, reverse=True)

    def of_text(self, text: str) -> str:
        """Returns the text without secrets; halves of surrogate pairs are spelled out, so that it can be encoded."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def of_bytes(self, data: bytes) -> bytes:
        """Returns the bytes without secrets."""
        for secret in self._secrets:
            data = data.replace(secret.encode("utf-8", "surrogatepass"), REDACTED.encode())
        return data
