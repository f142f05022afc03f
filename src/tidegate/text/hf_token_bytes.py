"""The bytes of each token of a `tokenizer.json`, worked out from its decoder.

Two families cover the models that generate text. Byte-level vocabularies write each byte as a printable character;
word-piece-like ones write a blank as U+2581, and have tokens `<0x00>` to `<0xFF>` for bytes that fit nowhere else.
"""

from collections.abc import Iterator, Mapping

import tokenizers

_BLANK = "\u2581"
_HARMLESS = frozenset(("ByteFallback", "Fuse", "Strip", "Replace", "Metaspace", "ByteLevel", "WordPiece"))


class UnusableTokenizer(Exception):
    """The files are not a tokenizer that can be served. The message says why."""


def _byte_alphabet() -> dict[str, int]:
    """Returns the printable characters of byte-level vocabularies with their bytes.

    Printable Latin-1 characters stand for themselves; the other bytes, in order, are U+0100 and up.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + at): byte for at, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()
_FALLBACK = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}


class PieceReader:
    """Reads tokens as one definition's decoder would."""

    def __init__(self, definition: Mapping[str, object]) -> None:
        """Raises UnusableTokenizer for a decoder that does something else."""
        steps = list(_steps(definition.get("decoder")))
        kinds = {str(step.get("type")) for step in steps}
        if unknown := kinds - _HARMLESS:
            raise UnusableTokenizer(f"tokenizer.json has a decoder that is not supported: {', '.join(sorted(unknown))}")
        self._is_byte_level = "ByteLevel" in kinds
        self._has_fallback = "ByteFallback" in kinds
        self._has_blanks = bool(kinds & {"Replace", "Metaspace"})
        self._continues_words = "WordPiece" in kinds
        self.strips_first_blank = self._continues_words or any(_strips_start(step) for step in steps)

    def read_all(
        self, tokenizer: tokenizers.Tokenizer, added: Mapping[int, str], special_ids: frozenset[int]
    ) -> list[bytes]:
        """Returns the bytes of all ids from 0. `added` tokens stand for themselves; ids of no token give b""."""
        vocab = tokenizer.get_vocab(with_added_tokens=True)
        pieces = [b""] * (max(vocab.values(), default=-1) + 1)
        for token, token_id in vocab.items():
            pieces[token_id] = self._read(token)
        for token_id, content in added.items():
            spelled = content if token_id in special_ids or self._is_byte_level else content.replace(_BLANK, " ")
            pieces[token_id] = spelled.encode("utf-8", "replace")
        return pieces

    def _read(self, token: str) -> bytes:
        if self._is_byte_level:
            values = [_BYTE_OF.get(character) for character in token]
            known = [value for value in values if value is not None]
            return bytes(known) if len(known) == len(token) else token.encode("utf-8", "replace")
        if self._has_fallback and token in _FALLBACK:
            return _FALLBACK[token]
        if self._has_blanks:
            token = token.replace(_BLANK, " ")
        elif self._continues_words:
            token = token[2:] if token.startswith("##") else f" {token}"
        return token.encode("utf-8", "replace")


def _steps(decoder: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(decoder, dict):
        return
    if decoder.get("type") != "Sequence":
        yield decoder
        return
    inner = decoder.get("decoders")
    for step in inner if isinstance(inner, list) else []:
        yield from _steps(step)


def _strips_start(step: Mapping[str, object]) -> bool:
    """Whether this step takes away the blank that encoding put in front of the text."""
    if step.get("type") == "Metaspace":
        return step.get("prepend_scheme", "always") != "never"
    return step.get("type") == "Strip" and step.get("content") == " " and bool(step.get("start"))
