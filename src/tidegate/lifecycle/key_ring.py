"""KeyRing: all keys of a server at one moment, and the question whose key one is.

Decides from a key's text and the wall clock who calls. Its rules:

- A key is looked up by the SHA-256 digest of what was presented. How long a dict takes may depend on the digest, but
  that helps nobody to guess a key: a caller cannot choose digests, and keys are 256 random bits.
- What was found is still compared in constant time, over all its 32 bytes; where nothing was found, with a digest that
  belongs to nobody, so that both take the same path. There is no loop over keys.
- A ring is closed from the first key on. Revoked and expired keys do not open it again.

Does not know where keys are stored, nor HTTP.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.errors import InvalidApiKey
from tidegate.lifecycle.key_policy import KeyRecord, KeyState
from tidegate.lifecycle.key_text import DIGEST_BYTES, digest_of

_NOBODY = bytes(DIGEST_BYTES)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """`by_digest` holds the keys that were not revoked. `is_closed`: whether calling takes a key."""

    by_digest: Mapping[bytes, KeyRecord] = field(default_factory=dict)
    is_closed: bool = False

    def identify(self, key: str, wall: float) -> KeyRecord:
        """Returns the record of a presented key. Raises InvalidApiKey for unknown, revoked and expired ones."""
        digest = digest_of(key)
        found = self.by_digest.get(digest)
        is_known = hmac.compare_digest(_NOBODY if found is None else found.digest, digest)
        if found is None or not is_known:
            raise InvalidApiKey("The API key is not valid.")
        if found.state(wall) is not KeyState.ACTIVE:
            raise InvalidApiKey("The API key has expired or was revoked.")
        return found
