"""Control tokens that a script brings along, as part of the vocabulary that lives as long as its request."""

from collections.abc import Sequence

from tidegate.text.byte_tokenizer import EOS_TOKEN_ID, FIRST_PIECE_ID
from tidegate.text.vocabulary import Vocabulary

FIRST_CONTROL_ID = EOS_TOKEN_ID + 1
MAX_CONTROLS = FIRST_PIECE_ID - FIRST_CONTROL_ID
"""Ids between the byte vocabulary's own and the pieces of a script."""


class ControlVocabulary:
    """A byte vocabulary with `spellings` as further control tokens: id 258+i is the i-th of them."""

    __slots__ = ("_base", "_spellings")

    def __init__(self, base: Vocabulary, spellings: Sequence[str]) -> None:
        self._base = base
        self._spellings = tuple(spelling.encode() for spelling in spellings)

    @property
    def size(self) -> int:
        return FIRST_CONTROL_ID + len(self._spellings)

    @property
    def bos_token_id(self) -> int | None:
        return self._base.bos_token_id

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        return self._base.eos_token_ids

    def token_bytes(self, token_id: int) -> bytes:
        index = token_id - FIRST_CONTROL_ID
        if index < 0:
            return self._base.token_bytes(token_id)
        return self._spellings[index] if index < len(self._spellings) else b""

    def is_special(self, token_id: int) -> bool:
        return self._base.is_special(token_id) or 0 <= token_id - FIRST_CONTROL_ID < len(self._spellings)
