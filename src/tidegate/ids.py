"""Names of things, as types. Minting takes entropy as an argument: this module reads none."""

from typing import NewType

RequestId = NewType("RequestId", str)
"""One operation inside the server and the engine; never a caller's own id."""

Epoch = NewType("Epoch", int)
"""Counts starts of an engine process; outputs of an older epoch are stale."""

SeqId = NewType("SeqId", int)
"""One sequence in the engine: a request's choice has exactly one at a time."""

BlockId = NewType("BlockId", int)
ChoiceIndex = NewType("ChoiceIndex", int)
TokenId = NewType("TokenId", int)

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def mint_id(prefix: str, entropy: bytes) -> str:
    """Returns `prefix` followed by one alphanumeric character for each byte of `entropy`."""
    return prefix + "".join(_ALPHABET[byte % 62] for byte in entropy)
