"""How prefills share a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.budget import StepBudget, share_tokens

# wanted, tokens, shares
CASES = [
    ([], 10, []),
    ([4], 10, [4]),
    ([40], 10, [10]),
    ([40, 3, 2], 10, [5, 3, 2]),
    ([40, 1, 1], 10, [8, 1, 1]),
    ([40, 40, 40], 10, [5, 5, 0]),
    ([2, 40, 40], 10, [2, 8, 0]),
    ([40, 40], 1, [1, 0]),
]


@pytest.mark.parametrize(("wanted", "num_tokens", "shares"), CASES)
def test_the_first_is_sure_of_half_and_gets_what_others_leave(
    wanted: list[int], num_tokens: int, shares: list[int]
) -> None:
    assert share_tokens(wanted, num_tokens) == shares


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 60))
def test_shares_use_all_that_is_wanted_and_there(wanted: list[int], num_tokens: int) -> None:
    shares = share_tokens(wanted, num_tokens)
    assert sum(shares) == min(sum(wanted), num_tokens)
    assert all(0 <= share <= want for share, want in zip(shares, wanted, strict=True))


def test_a_budget_cannot_be_overdrawn() -> None:
    budget = StepBudget(num_rows=2, num_tokens=5, num_scored_rows=0)
    budget.take(3)
    with pytest.raises(AssertionError):
        budget.take(3)
