"""A rendered chat prompt that still knows which spelled control tokens its template did not write."""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The prompt's text, and its seams.

    A seam is an offset into `text`, in characters. A spelled control token that lies across a seam (it begins before
    and ends after) was written by a caller, not by the template, and is plain text. Seams are sorted and distinct.
    """

    text: str
    seams: tuple[int, ...] = ()

    def is_plain(self, start: int, end: int) -> bool:
        """Whether a seam lies strictly between the two offsets, so that a control token spelled there is plain text."""
        at = bisect_right(self.seams, start)
        return at < len(self.seams) and self.seams[at] < end

    def has_bos(self, bos_token: str) -> bool:
        """Whether the template has written the BOS already, as the prompt's first characters."""
        return bool(bos_token) and self.text.startswith(bos_token) and not self.is_plain(0, len(bos_token))
