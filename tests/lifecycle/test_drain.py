"""Drain: accepting, draining, stopped, and nothing else."""

import pytest

from tidegate.errors import InternalError
from tidegate.lifecycle.drain import DRAIN, Drain, DrainEvent, DrainState

BEGIN, END = DrainEvent.BEGIN, DrainEvent.END


def test_a_second_wish_to_stop_neither_restarts_nor_cuts_a_drain() -> None:
    drain = Drain()
    assert drain.is_accepting
    assert [drain.apply(event) for event in (BEGIN, BEGIN, END, END, BEGIN)] == [True, False, True, False, False]
    assert drain.state is DrainState.STOPPED


def test_a_drain_does_not_end_before_it_began() -> None:
    drain = Drain()
    with pytest.raises(InternalError, match=r"END .* ACCEPTING"):
        drain.apply(END)
    assert drain.is_accepting


def test_the_table_is_this() -> None:
    rows = {(old.value, event.value, new.value) for old, row in DRAIN.items() for event, new in row.items()}
    assert rows == {
        ("accepting", "begin", "draining"),
        ("draining", "begin", "draining"),
        ("draining", "end", "stopped"),
        ("stopped", "begin", "stopped"),
        ("stopped", "end", "stopped"),
    }
