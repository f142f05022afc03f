"""How many tokens are guessed, by how earlier guesses fared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.speculative.pace import FIRST_REST, LONGEST_REST, DraftPace

CASES: list[tuple[list[tuple[int, int]], int]] = [
    ([], 2),
    ([(2, 2)], 4),
    ([(2, 2), (4, 4)], 8),
    ([(2, 2), (4, 4), (8, 8)], 8),
    ([(2, 1)], 2),
    ([(2, 2), (4, 1)], 2),
    ([(2, 2), (4, 0)], 2),
    ([(2, 0)], 1),
    ([(2, 2), (4, 4), (1, 1)], 8),
    ([(2, 2), (4, 4), (1, 0)], 0),
]


@pytest.mark.parametrize(("fates", "wish"), CASES, ids=range(len(CASES)))
def test_the_wish_follows_the_guesses(fates: list[tuple[int, int]], wish: int) -> None:
    pace = DraftPace(8)
    for num_drafted, num_accepted in fates:
        pace.next_wish()
        pace.note(num_drafted, num_accepted)
    assert pace.next_wish() == wish


def rests(pace: DraftPace) -> int:
    count = 0
    while pace.next_wish() == 0:
        count += 1
    return count


def test_a_sequence_whose_guesses_fail_rests_longer_each_time_and_is_tried_again() -> None:
    pace = DraftPace(4)
    pace.note(2, 0)
    found = []
    for _ in range(7):
        pace.note(1, 0)
        found.append(rests(pace))
    assert found == [FIRST_REST, 8, 16, 32, LONGEST_REST, LONGEST_REST, LONGEST_REST]
    pace.note(1, 1)
    assert pace.next_wish() == 2
    pace.note(2, 0)
    pace.note(1, 0)
    assert rests(pace) == FIRST_REST, "one right guess ends the long rests"


@given(st.integers(1, 64), st.lists(st.tuples(st.integers(1, 64), st.integers(0, 64)), max_size=60))
def test_a_wish_is_never_more_than_the_most_nor_less_than_nothing(most: int, fates: list[tuple[int, int]]) -> None:
    pace = DraftPace(most)
    for num_drafted, num_accepted in fates:
        wish = pace.next_wish()
        assert 0 <= wish <= most
        drafted = min(wish, num_drafted)
        if drafted:
            pace.note(drafted, min(drafted, num_accepted))
