"""Whose turn it is in the engine: priorities move places in line by seconds, and nobody waits for ever."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.step import EngineCore
from tidegate.inference.turn_rule import TurnRule
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

MIXED = [("first", 0), ("late", 5), ("second", 0), ("urgent", -5)]

ORDERS = [
    ("priorities", TurnRule(), ["urgent", "first", "second", "late"]),
    ("first come first served", TurnRule(None), ["first", "late", "second", "urgent"]),
]


def _driver(turns: TurnRule, *, max_sequences: int = 1) -> CoreDriver:
    shape = SimulatedShape(max_model_len=64, num_blocks=64, block_tokens=4, max_sequences=max_sequences)
    chooser = PlainChooser()
    driver = CoreDriver(SimulatedBackend(SimulatedModel.HISTORY, shape), chooser)
    driver.core = EngineCore(driver.backend, chooser, turns=turns)
    return driver


@pytest.mark.parametrize(("turns", "order"), [case[1:] for case in ORDERS], ids=[case[0] for case in ORDERS])
def test_who_came_at_one_time_goes_by_the_rule(turns: TurnRule, order: list[str]) -> None:
    driver = _driver(turns)
    for request_id, priority in MIXED:
        driver.add(make_request(request_id, "ab", max_tokens=1, priority=priority))
    ended = []
    while driver.core.next_wake_at(0.0) is not None:
        ended += [delta.request_id for delta in driver.step()]
    assert ended == order


def test_one_who_waits_is_passed_only_by_those_within_the_head_start_of_their_priority() -> None:
    driver = _driver(TurnRule(1.0))
    driver.add(make_request("patient", "ab", max_tokens=1, priority=4))
    ended: list[str] = []
    for second in range(8):
        driver.add(make_request(f"urgent{second}", "ab", max_tokens=1, priority=0))
        ended += [delta.request_id for delta in driver.step()]
        driver.clock.advance(1.0)
    # At second 4 both stand at the same place, and the older one goes first.
    assert ended == ["urgent0", "urgent1", "urgent2", "urgent3", "patient", "urgent4", "urgent5", "urgent6"]


STEP_S = 2.0
MOST_URGENT = -5
LONGEST = 4


@settings(max_examples=60, deadline=None)
@given(
    st.integers(MOST_URGENT, 5),
    st.lists(st.lists(st.tuples(st.integers(MOST_URGENT, 5), st.integers(1, LONGEST)), max_size=3), max_size=15),
    st.integers(1, 3),
)
def test_nobody_starves_whoever_comes_after(own: int, arrivals: list[list[tuple[int, int]]], num_rows: int) -> None:
    """More come in each second than the engine serves, of any priority and for ever: once those are served whose place
    is before ours it is our turn, and who came after the longest head start is not among them."""
    driver = _driver(TurnRule(STEP_S), max_sequences=num_rows)
    driver.add(make_request("me", "ab", max_tokens=3, priority=own))
    last_rival_s = (own - MOST_URGENT) * STEP_S
    num_steps_before_me = 2 * LONGEST
    second = 0
    while second <= last_rival_s + num_steps_before_me:
        coming = arrivals[second] if second < len(arrivals) else [(MOST_URGENT, LONGEST), (MOST_URGENT, 2)]
        for number, (priority, max_tokens) in enumerate(coming):
            driver.add(make_request(f"r{second}.{number}", "ab", max_tokens=max_tokens, priority=priority))
            if second + priority * STEP_S < own * STEP_S:
                num_steps_before_me += max_tokens + 1
        driver.step()
        driver.clock.advance(1.0)
        second += 1
        if driver.records["me", 0].finish is not None:
            return
    raise AssertionError(f"starved: {num_steps_before_me} steps were enough for all that were before")
