"""Which log-probability entries travel with which text (CONTRACT.md section 7).

An entry belongs to the content when some of its token's text was returned as content, and travels with the delta
that first carries that text. The aligner counts characters: a token's place is the number of characters that were
complete before it, so the pieces of one character share a place and leave together.
"""

from collections import deque

import msgspec

from tidegate.inference.event import LogprobEntry
from tidegate.inference.output import TokenLogprob
from tidegate.text.vocabulary import Vocabulary


def make_entry(vocabulary: Vocabulary, scored: TokenLogprob, text_offset: int) -> LogprobEntry:
    """Returns the entry of one token with the token's own text and bytes."""
    token_bytes = vocabulary.token_bytes(scored.token_id)
    top = tuple((_text(raw), value, raw) for raw, value in _alternatives(vocabulary, scored))
    return LogprobEntry(_text(token_bytes), scored.logprob, token_bytes, top, text_offset)


def _alternatives(vocabulary: Vocabulary, scored: TokenLogprob) -> list[tuple[bytes, float]]:
    return [(vocabulary.token_bytes(token_id), value) for token_id, value in scored.top]


def _text(token_bytes: bytes) -> str:
    return token_bytes.decode("utf-8", "replace")


class LogprobAligner:
    """Holds entries until their text leaves. `text_start` is the offset of the first generated character."""

    def __init__(self, vocabulary: Vocabulary, text_start: int) -> None:
        self._vocabulary = vocabulary
        self._text_start = text_start
        self._waiting: deque[tuple[int, LogprobEntry]] = deque()
        self._num_chars = 0
        self._num_text_bytes = 0
        self._num_entry_bytes = 0
        self._has_replacement = False

    def feed(self, scored: TokenLogprob, num_chars_before: int) -> None:
        """Takes a token that has text; `num_chars_before` characters were complete before it."""
        entry = make_entry(self._vocabulary, scored, self._text_start + num_chars_before)
        self._waiting.append((num_chars_before, entry))

    def release(self, text: str) -> tuple[LogprobEntry, ...]:
        """Returns the entries that travel with `text`, the next visible text."""
        self._num_chars += len(text)
        self._num_text_bytes += len(text.encode())
        self._has_replacement = self._has_replacement or "\ufffd" in text
        released = []
        while self._waiting and self._waiting[0][0] < self._num_chars:
            entry = self._waiting.popleft()[1]
            self._num_entry_bytes += len(entry.token_bytes)
            released.append(entry)
        return tuple(released)

    def release_cut(self, text: str) -> tuple[LogprobEntry, ...]:
        """Like `release`, for the last text before a stop string: the token that it cuts keeps what is visible.

        Text with replacement characters is left alone: its tokens' bytes are not its own.
        """
        entries = self.release(text)
        excess = self._num_entry_bytes - self._num_text_bytes
        if not entries or self._has_replacement or not 0 < excess < len(entries[-1].token_bytes):
            return entries
        kept = entries[-1].token_bytes[:-excess]
        return (*entries[:-1], msgspec.structs.replace(entries[-1], token=_text(kept), token_bytes=kept))
