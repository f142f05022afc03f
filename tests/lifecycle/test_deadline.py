"""The least limit of each kind counts, and the one for the first token only until it has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lifecycle.deadline import NO_DEADLINES, Deadlines, TimeLimit, fix_deadlines

SCOPES = ("request", "key", "server")
limits = st.lists(st.builds(TimeLimit, st.none() | st.integers(1, 10**9), st.sampled_from(SCOPES)), max_size=4)


def fix(whole_ms: int | None = None, first_token_ms: int | None = None) -> Deadlines:
    return fix_deadlines(100.0, [TimeLimit(whole_ms, "request")], [TimeLimit(first_token_ms, "key")])


def test_without_limits_there_is_no_deadline() -> None:
    assert fix() == NO_DEADLINES
    assert NO_DEADLINES.next(has_first_token=False) is None


@given(limits, limits)
def test_the_least_limit_of_each_kind_counts_from_receipt(whole: list[TimeLimit], first: list[TimeLimit]) -> None:
    deadlines = fix_deadlines(100.0, whole, first)
    for deadline, given_limits in ((deadlines.whole, whole), (deadlines.first_token, first)):
        given_ms = [limit.limit_ms for limit in given_limits if limit.limit_ms is not None]
        assert (deadline is None) == (not given_ms)
        if deadline is not None:
            assert deadline.limit_ms == min(given_ms)
            assert deadline.at == 100.0 + min(given_ms) / 1000
            assert TimeLimit(deadline.limit_ms, deadline.scope) in given_limits


@pytest.mark.parametrize(
    ("whole_ms", "first_token_ms", "before", "after"),
    [
        (2000, 500, "first_token_deadline_ms", "deadline_ms"),
        (500, 2000, "deadline_ms", "deadline_ms"),
        (500, 500, "deadline_ms", "deadline_ms"),
        (None, 500, "first_token_deadline_ms", None),
        (500, None, "deadline_ms", "deadline_ms"),
    ],
)
def test_the_first_token_ends_the_deadline_for_it(
    whole_ms: int | None, first_token_ms: int | None, before: str, after: str | None
) -> None:
    deadlines = fix(whole_ms, first_token_ms)
    due, later = deadlines.next(has_first_token=False), deadlines.next(has_first_token=True)
    assert (due and due.name, later and later.name) == (before, after)


def test_the_error_says_which_limit_of_whom_passed_and_when() -> None:
    due = fix(2000, 500).next(has_first_token=False)
    assert due is not None
    error = due.error(now=100.75)
    assert error.limit is not None
    assert (error.limit.name, error.limit.value, error.limit.actual) == ("first_token_deadline_ms", 500, 750)
    assert error.limit.scope == "key"
    assert "500 ms" in error.message
