"""Keeps what callers wrote apart from what the template wrote, through a rendering.

No caller may open a turn (SEC-28): a control token spelled in a message, a tool or a template variable must reach the
model as plain text. Before the rendering every such spelling in every caller's string gets a mark after its first
character; afterwards the marks are taken out again, and where they were are the prompt's seams. The tokenizer reads
no control token across a seam. An end of a string that could be the beginning of a spelling is marked too, so that no
spelling can be pieced together from neighbouring strings.

The marks are lone surrogates. They are no text: JSON and UTF-8 cannot carry them, so no caller can send one (one that
came nevertheless becomes U+FFFD), and being single characters that are no white space they survive whatever templates
do to strings. Text without control spellings is not touched at all, so templates see it exactly as it is.

Not covered: spellings that only come about when a template changes a string, by replacing or by changing case.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from tidegate.text.control_split import compile_spellings
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.template_budget import RenderBudget

_SEAM = "\udfff"
END_MARK = "\udffe"
"""Stands where `continue_final_message` ends the prompt."""
_SURROGATES = re.compile("[\ud800-\udfff]")


class ControlGuard:
    """Marks the control spellings of one vocabulary in callers' values. A spelling of one character has no inside and
    cannot be marked.
    """

    def __init__(self, spellings: Iterable[str]) -> None:
        markable = {spelling for spelling in spellings if len(spelling) > 1}
        self._begins = compile_spellings(markable, overlapping=True)
        self._prefixes = frozenset(spelling[:length] for spelling in markable for length in range(1, len(spelling)))
        self._first_characters = frozenset(spelling[0] for spelling in markable)
        self._longest = max(map(len, markable), default=0)

    def mark(self, value: object, budget: RenderBudget) -> object:
        """Returns a copy of a JSON-like value with all its strings marked, keys of mappings included."""
        if isinstance(value, str):
            return self.mark_text(value)
        if isinstance(value, Mapping):
            return self.mark_mapping(value, budget)
        if isinstance(value, list | tuple):
            budget.tick()
            return [self.mark(item, budget) for item in value]
        return value

    def mark_mapping(self, value: Mapping[str, object], budget: RenderBudget) -> dict[str, object]:
        """The same for a mapping."""
        budget.tick()
        return {self.mark_text(str(key)): self.mark(item, budget) for key, item in value.items()}

    def mark_text(self, text: str) -> str:
        """Returns `text` with its marks; mostly `text` itself."""
        if not text.isascii():
            text = _SURROGATES.sub("\ufffd", text)
        if self._begins is None:
            return text
        places = {found.start() + 1 for found in self._begins.finditer(text)}
        places.update(self._open_ends(text))
        if not places:
            return text
        cuts = [0, *sorted(places), len(text)]
        return _SEAM.join(text[start:end] for start, end in pairwise(cuts))

    def _open_ends(self, text: str) -> Iterable[int]:
        """Yields where marks go in an end of `text` that begins a spelling; a template may trim white space off."""
        for end in {len(text), len(text.rstrip())}:
            tail_at = max(end - self._longest + 1, 0)
            if self._first_characters.isdisjoint(text[tail_at:end]):
                continue
            for start in range(tail_at, end):
                if text[start:end] in self._prefixes:
                    yield start + 1


def take_marks(text: str) -> RenderedPrompt:
    """Takes the marks out of a rendered text."""
    parts = text.split(_SEAM)
    if len(parts) == 1:
        return RenderedPrompt(text)
    seams: list[int] = []
    offset = 0
    for part in parts[:-1]:
        offset += len(part)
        if not seams or seams[-1] != offset:
            seams.append(offset)
    return RenderedPrompt("".join(parts), tuple(seams))
