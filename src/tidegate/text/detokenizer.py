"""Tokens to text, as soon as the text is certain.

Decides which characters are complete, on bytes alone. A character whose bytes have not all come is kept back; bytes
that can never become a character give one U+FFFD for each maximal subpart (Unicode 15, section 3.9, the practice of
the WHATWG decoder) in the step that shows it. A real U+FFFD in the output (EF BF BD) is a character like any other.

Knows nothing of stop strings, of why generation ended, or of what a token means beyond its bytes.
"""

from codecs import utf_8_decode
from collections.abc import Iterable

from tidegate.text.vocabulary import Vocabulary


class Detokenizer:
    """Decodes one choice's tokens, one by one. Control tokens add nothing if `skip_special`, else their spelling."""

    __slots__ = ("_is_special", "_pending", "_skip_special", "_token_bytes")

    def __init__(self, vocabulary: Vocabulary, *, skip_special: bool) -> None:
        self._token_bytes = vocabulary.token_bytes
        self._is_special = vocabulary.is_special
        self._skip_special = skip_special
        self._pending = b""

    @property
    def num_pending_bytes(self) -> int:
        """How many bytes of an unfinished character are kept back: 0 to 3."""
        return len(self._pending)

    def feed(self, token_id: int) -> str:
        """Returns the characters that this token completes; "" if none."""
        if self._skip_special and self._is_special(token_id):
            return ""
        data = self._token_bytes(token_id)
        if self._pending:
            data = self._pending + data
        text, num_used = utf_8_decode(data, "replace", False)
        self._pending = pending = data[num_used:]
        if pending and pending[0] == 0xED and len(pending) == 2 and pending[1] >= 0xA0:
            # Half of a surrogate: never a character, but Python's decoder waits for its third byte.
            self._pending = b""
            text += "\ufffd\ufffd"
        return text

    def finish(self) -> str:
        """Ends the text: a cut-off character becomes one U+FFFD."""
        if not self._pending:
            return ""
        self._pending = b""
        return "\ufffd"


def decode_tokens(vocabulary: Vocabulary, token_ids: Iterable[int], *, skip_special: bool) -> str:
    """Returns the text of a whole token list: the same as feeding a `Detokenizer` and finishing it."""
    pieces = (
        vocabulary.token_bytes(token_id)
        for token_id in token_ids
        if not (skip_special and vocabulary.is_special(token_id))
    )
    return b"".join(pieces).decode("utf-8", "replace")
