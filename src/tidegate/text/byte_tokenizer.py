"""One token for each byte: the tokenizer of the simulated and the scripted engine.

Ids 0..255 are the bytes, 256 begins a sequence and 257 ends it. A script may also bring pieces of several bytes, which
become tokens of a vocabulary that lives as long as its request.
"""

from collections.abc import Iterable, Sequence

from tidegate.text.control_split import ControlTable, split_controls
from tidegate.text.detokenizer import decode_tokens
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.vocabulary import Vocabulary

BOS_TOKEN = "<|bos|>"
EOS_TOKEN = "<|eos|>"
BOS_TOKEN_ID = 256
EOS_TOKEN_ID = 257
FIRST_PIECE_ID = 512
"""Where the tokens of a script begin; the ids between are nobody's."""

_BYTES = (*(bytes([value]) for value in range(256)), BOS_TOKEN.encode(), EOS_TOKEN.encode())


class ByteVocabulary:
    """256 bytes and two control tokens."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return len(_BYTES)

    @property
    def bos_token_id(self) -> int:
        return BOS_TOKEN_ID

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        return (EOS_TOKEN_ID,)

    def token_bytes(self, token_id: int) -> bytes:
        return _BYTES[token_id] if 0 <= token_id < len(_BYTES) else b""

    def is_special(self, token_id: int) -> bool:
        return token_id in (BOS_TOKEN_ID, EOS_TOKEN_ID)


class ByteTokenizer:
    """Text as its UTF-8 bytes. Adds no BOS. A lone surrogate, which has no UTF-8 form, becomes `?`."""

    def __init__(self) -> None:
        self._vocabulary = ByteVocabulary()
        self._controls = ControlTable({BOS_TOKEN: BOS_TOKEN_ID, EOS_TOKEN: EOS_TOKEN_ID})

    @property
    def vocabulary(self) -> ByteVocabulary:
        return self._vocabulary

    @property
    def control_spellings(self) -> frozenset[str]:
        return self._controls.spellings

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """`add_special` changes nothing: by default this tokenizer adds no control token."""
        del add_special
        return self.encode_chat(RenderedPrompt(text)) if parse_special else list(text.encode("utf-8", "replace"))

    def encode_chat(self, prompt: RenderedPrompt) -> list[int]:
        token_ids: list[int] = []
        for part in split_controls(prompt, self._controls):
            if isinstance(part, int):
                token_ids.append(part)
            else:
                token_ids.extend(part.encode("utf-8", "replace"))
        return token_ids

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        return decode_tokens(self._vocabulary, token_ids, skip_special=skip_special)


class ExtendedVocabulary:
    """A base vocabulary with further tokens: id `first_id + i` is the i-th of `pieces`; ids from there on are theirs.

    With `are_special` the further tokens are control tokens.
    """

    __slots__ = ("_are_special", "_base", "_first_id", "_pieces")

    def __init__(self, base: Vocabulary, pieces: Sequence[bytes], first_id: int, *, are_special: bool = False) -> None:
        self._base = base
        self._pieces = tuple(pieces)
        self._first_id = first_id
        self._are_special = are_special

    @property
    def size(self) -> int:
        return self._first_id + len(self._pieces)

    @property
    def bos_token_id(self) -> int | None:
        return self._base.bos_token_id

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        return self._base.eos_token_ids

    def token_bytes(self, token_id: int) -> bytes:
        index = token_id - self._first_id
        if index < 0:
            return self._base.token_bytes(token_id)
        return self._pieces[index] if index < len(self._pieces) else b""

    def is_special(self, token_id: int) -> bool:
        if token_id < self._first_id:
            return self._base.is_special(token_id)
        return self._are_special and token_id < self.size


def tokenize_pieces(base: Vocabulary, pieces: Iterable[bytes]) -> tuple[list[int], ExtendedVocabulary]:
    """Makes each piece one token: a single byte keeps its own id, equal pieces share one.

    Returns the ids in order, and the vocabulary that knows them. Several lists that belong to one request are best
    joined first, so that they share one vocabulary. `base` must have the bytes as ids 0..255, as `ByteVocabulary` has.
    """
    ids: dict[bytes, int] = {}
    token_ids = [piece[0] if len(piece) == 1 else ids.setdefault(piece, FIRST_PIECE_ID + len(ids)) for piece in pieces]
    return token_ids, ExtendedVocabulary(base, tuple(ids), FIRST_PIECE_ID)
