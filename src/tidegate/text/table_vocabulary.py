"""A vocabulary as a table, read once from a model file."""

from collections.abc import Sequence
from hashlib import sha256


class TableVocabulary:
    """`pieces[i]` are the bytes of token i, `special_ids` the control tokens."""

    __slots__ = ("_bos_token_id", "_eos_token_ids", "_pieces", "_special_ids")

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        special_ids: frozenset[int],
        bos_token_id: int | None,
        eos_token_ids: tuple[int, ...],
    ) -> None:
        self._pieces = tuple(pieces)
        self._special_ids = special_ids
        self._bos_token_id = bos_token_id
        self._eos_token_ids = eos_token_ids

    @property
    def size(self) -> int:
        return len(self._pieces)

    @property
    def bos_token_id(self) -> int | None:
        return self._bos_token_id

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        return self._eos_token_ids

    def token_bytes(self, token_id: int) -> bytes:
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else b""

    def is_special(self, token_id: int) -> bool:
        return token_id in self._special_ids

    def longest_token_bytes(self) -> int:
        """The most bytes that one token stands for."""
        return max(map(len, self._pieces), default=1)

    def digest(self, rules: bytes) -> str:
        """Hex SHA-256 over `rules` (whatever else decides the ids of a text), every token's bytes and kind, and the
        tokens that begin and end.
        """
        hasher = sha256(b"%d:%s" % (len(rules), rules))
        for token_id, piece in enumerate(self._pieces):
            hasher.update(b"%d:%d:%s" % (len(piece), token_id in self._special_ids, piece))
        hasher.update(repr((self._bos_token_id, self._eos_token_ids)).encode())
        return hasher.hexdigest()
