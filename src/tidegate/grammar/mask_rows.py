"""Which rows of the mask buffer a batch may write."""

from collections.abc import Sequence

from tidegate.grammar.matcher import MaskRow


def check_rows(rows: Sequence[MaskRow], num_rows: int) -> None:
    """Raises ValueError when a row lies outside the buffer or is wanted twice."""
    wanted = [row for entry in rows for row in range(entry.row, entry.row + 1 + len(entry.draft_ids))]
    if any(not 0 <= row < num_rows for row in wanted):
        raise ValueError(f"a mask row outside the buffer of {num_rows} rows")
    if len(set(wanted)) != len(wanted):
        raise ValueError("two machines want the same mask row")
