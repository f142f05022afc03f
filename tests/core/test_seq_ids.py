"""Which sequence id a new sequence takes, as a table."""

import pytest

from tidegate.core.kv.seq_ids import IdChoice, choose_id

# what, used, free, cached (oldest first), is ordered, preferred, choice
CASES = [
    ("the least that is free", {0}, [3, 2], (1,), False, None, IdChoice(2)),
    ("the oldest cached one", {0}, [], (2, 1), False, None, IdChoice(2, 2)),
    ("the preferred one", {0}, [3], (2, 1), False, 1, IdChoice(1, 1)),
    ("any where nothing runs", set(), [3], (2,), True, None, IdChoice(3)),
    ("a gap before an end", {1, 3}, [0, 2, 4], (), True, None, IdChoice(2)),
    ("a free neighbour", {1}, [2, 5], (0,), True, None, IdChoice(2)),
    ("a cached gap, whose content may go to a free id", {1, 3}, [0, 5], (4, 2), True, None, IdChoice(2, 2, 5)),
    ("a cached gap, whose content may go to an older one's id", {1, 3}, [], (4, 2), True, None, IdChoice(2, 2, 4)),
    ("a cached gap that is the oldest", {1, 3}, [], (2, 4), True, None, IdChoice(2, 2)),
    ("the preferred one in the gap", {1, 3}, [0], (4, 2), True, 2, IdChoice(2, 2)),
    ("not the preferred one beside a gap", {1, 3}, [2], (4,), True, 4, IdChoice(2)),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_the_choice_is(case: tuple[str, set[int], list[int], tuple[int, ...], bool, int | None, IdChoice]) -> None:
    _, used, free, cached, is_ordered, preferred, expected = case
    assert choose_id(frozenset(used), free, cached, is_ordered=is_ordered, preferred=preferred) == expected
