"""Which rows of the mask buffer a batch may write, and the writing, machine by machine."""

from collections.abc import Sequence
from typing import Protocol

from tidegate.grammar.mask_buffer import MaskWords
from tidegate.grammar.matcher import MaskRow


class FillingMatcher(Protocol):
    """A machine that writes its own rows."""

    def fill(self, words: MaskWords, row: int, draft_ids: Sequence[int]) -> int:
        """Fills `row` and those behind it for the legal tokens of a draft; returns how many are legal."""
        ...


def fill_rows(rows: Sequence[MaskRow], words: MaskWords | None, kind: type[FillingMatcher]) -> list[int]:
    """`GrammarCompiler.fill` for machines of one `kind`. Raises ValueError before anything is written."""
    if words is None:
        raise ValueError("no mask buffer is registered")
    check_rows(rows, len(words))
    matchers = [entry.matcher for entry in rows if isinstance(entry.matcher, kind)]
    if len(matchers) != len(rows):
        raise ValueError("a machine of another backend")
    return [matcher.fill(words, entry.row, entry.draft_ids) for matcher, entry in zip(matchers, rows, strict=True)]


def check_rows(rows: Sequence[MaskRow], num_rows: int) -> None:
    """Raises ValueError when a row lies outside the buffer or is wanted twice."""
    wanted = [row for entry in rows for row in range(entry.row, entry.row + 1 + len(entry.draft_ids))]
    if any(not 0 <= row < num_rows for row in wanted):
        raise ValueError(f"a mask row outside the buffer of {num_rows} rows")
    if len(set(wanted)) != len(wanted):
        raise ValueError("two machines want the same mask row")
