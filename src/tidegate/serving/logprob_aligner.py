"""Which log-probability entries travel with which text (CONTRACT.md section 7).

An entry belongs to the content when some of its token's text was returned as content, and travels with the delta
that first carries that text. The aligner counts characters: a token's place is the number of characters that were
complete before it, so the pieces of one character share a place and leave together. Content may have gaps, where the
output was reasoning or a call: a token that lies in one never leaves.
"""

from collections import deque
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An entry, and the characters of the output, from `start` on and up to `end`, that its token has a part in."""

    start: int
    end: int
    entry: LogprobEntry


class LogprobAligner:
    """Holds entries until their text leaves. `text_start` is the offset of the first generated character."""

    def __init__(self, vocabulary: Vocabulary, text_start: int) -> None:
        self._vocabulary = vocabulary
        self._text_start = text_start
        self._waiting: deque[_Waiting] = deque()
        self._gaps: deque[tuple[int, int]] = deque()
        """Characters of content before a gap, and the length of the gap."""
        self._num_content = 0
        self._num_released = 0
        self._num_chars = 0
        self._num_text_bytes = 0
        self._num_entry_bytes = 0
        self._has_replacement = False

    def feed(self, scored: TokenLogprob, start: int, end: int) -> None:
        """Takes a token that has text: a part in the output's characters `start` to `end`, the last one excluded."""
        entry = make_entry(self._vocabulary, scored, self._text_start + start)
        self._waiting.append(_Waiting(start, end, entry))

    def note_content(self, num_chars: int, num_skipped: int) -> None:
        """Says where content lies in the output: `num_chars`, after `num_skipped` that are something else."""
        if num_skipped:
            self._gaps.append((self._num_content, num_skipped))
        self._num_content += num_chars

    def num_open(self, num_chars: int, num_read: int) -> int:
        """Returns how many of the next `num_chars` of content had better wait, from the end.

        They begin a token whose further text was read (`num_read` characters of the output were) and may still become
        content, or not: its entry cannot be told yet.
        """
        content_end = self._num_released + num_chars
        if any(before == content_end for before, _ in self._gaps):
            return 0
        end = self._num_chars + num_chars + sum(size for before, size in self._gaps if before < content_end)
        for waiting in self._waiting:
            if waiting.start < end < min(waiting.end, num_read):
                return min(end - waiting.start, num_chars)
        return 0

    def release(self, text: str, *, is_end: bool = False) -> tuple[LogprobEntry, ...]:
        """Returns the entries that travel with `text`, the next visible text.

        A token whose further text is no content keeps what is: where a gap follows, or nothing more (`is_end`).
        """
        released: list[LogprobEntry] = []
        at = 0
        while at < len(text):
            self._skip_gaps()
            size = len(text) - at
            if self._gaps:
                size = min(size, self._gaps[0][0] - self._num_released)
            last = self._release_stretch(text[at : at + size], released)
            at += size
            is_before_gap = bool(self._gaps) and self._gaps[0][0] == self._num_released
            if last is not None and last.end > self._num_chars and (is_before_gap or (is_end and at == len(text))):
                released[-1] = _without_tail(last, self._num_chars).entry
        return tuple(released)

    def _skip_gaps(self) -> None:
        """Drops the entries of tokens that lie in a gap; one that reaches out of it keeps what is content."""
        while self._gaps and self._gaps[0][0] == self._num_released:
            self._num_chars += self._gaps.popleft()[1]
            self._num_text_bytes = self._num_entry_bytes = 0
            self._has_replacement = False
            while self._waiting and self._waiting[0].end <= self._num_chars:
                self._waiting.popleft()
            if self._waiting and self._waiting[0].start < self._num_chars:
                self._waiting[0] = _without_head(self._waiting[0], self._num_chars)

    def _release_stretch(self, text: str, released: list[LogprobEntry]) -> _Waiting | None:
        """Returns what was released last."""
        last = None
        self._num_chars += len(text)
        self._num_released += len(text)
        self._num_text_bytes += len(text.encode())
        self._has_replacement = self._has_replacement or "\ufffd" in text
        while self._waiting and self._waiting[0].start < self._num_chars:
            last = self._waiting.popleft()
            self._num_entry_bytes += len(last.entry.token_bytes)
            released.append(last.entry)
        return last

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


def _without_head(waiting: _Waiting, start: int) -> _Waiting:
    """Returns what is left of a token from character `start` on; a token of parts of characters stays as it is."""
    text = waiting.entry.token
    if len(text) != waiting.end - waiting.start or "\ufffd" in text:
        return waiting
    kept = text[start - waiting.start :]
    entry = msgspec.structs.replace(waiting.entry, token=kept, token_bytes=kept.encode())
    return _Waiting(start, waiting.end, entry)


def _without_tail(waiting: _Waiting, end: int) -> _Waiting:
    """Returns what is left of a token before character `end`; a token of parts of characters stays as it is."""
    text = waiting.entry.token
    if len(text) != waiting.end - waiting.start or "\ufffd" in text:
        return waiting
    kept = text[: end - waiting.start]
    entry = msgspec.structs.replace(waiting.entry, token=kept, token_bytes=kept.encode())
    return _Waiting(waiting.start, end, entry)
