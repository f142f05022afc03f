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
    """Decodes one choice's tokens, one by one. Control tokens add nothing if `skip_special`, else their spelling.

    `shown`: control tokens that are not skipped. `memo` remembers tokens that are whole characters by themselves, but
    none of `shown`. Detokenizers of the same vocabulary and the same `skip_special` may share one; it grows to the size
    of the vocabulary.
    """

    __slots__ = ("_is_special", "_memo", "_pending", "_shown", "_skip_special", "_token_bytes")

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        skip_special: bool,
        memo: dict[int, str] | None = None,
        shown: frozenset[int] = frozenset(),
    ) -> None:
        self._memo: dict[int, str] = {} if memo is None else memo
        self._token_bytes = vocabulary.token_bytes
        self._is_special = vocabulary.is_special
        self._skip_special = skip_special
        self._shown = shown
        self._pending = b""

    @property
    def num_pending_bytes(self) -> int:
        """How many bytes of an unfinished character are kept back: 0 to 3."""
        return len(self._pending)

    def feed(self, token_id: int) -> str:
        """Returns the characters that this token completes; "" if none."""
        pending = self._pending
        is_shown = token_id in self._shown
        if not pending and not is_shown and (text := self._memo.get(token_id)) is not None:
            return text
        is_skipped = self._skip_special and not is_shown and self._is_special(token_id)
        data = b"" if is_skipped else self._token_bytes(token_id)
        text, rest = _decode(pending + data)
        self._pending = rest
        if not pending and not rest and not is_shown:
            self._memo[token_id] = text
        return text

    def finish(self) -> str:
        """Ends the text: a cut-off character becomes one U+FFFD."""
        if not self._pending:
            return ""
        self._pending = b""
        return "\ufffd"


def _decode(data: bytes) -> tuple[str, bytes]:
    """Returns the text of `data` and the bytes at its end that may yet become a character."""
    text, num_used = utf_8_decode(data, "replace", False)
    rest = data[num_used:]
    if len(rest) == 2 and rest[0] == 0xED and rest[1] >= 0xA0:
        # Half of a surrogate: never a character, but Python's decoder waits for its third byte.
        return text + "\ufffd\ufffd", b""
    return text, rest


def decode_tokens(vocabulary: Vocabulary, token_ids: Iterable[int], *, skip_special: bool) -> str:
    """Returns the text of a whole token list: the same as feeding a `Detokenizer` and finishing it."""
    pieces = (
        vocabulary.token_bytes(token_id)
        for token_id in token_ids
        if not (skip_special and vocabulary.is_special(token_id))
    )
    return b"".join(pieces).decode("utf-8", "replace")
