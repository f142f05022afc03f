"""When a pool gets an engine and when one retires: the table, the waits, and that the number comes to rest."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.pool.scaling import (
    MAX_PATIENCE,
    MAX_REST_S,
    SCALE,
    PoolLoad,
    ScaleAct,
    ScalePhase,
    ScaleRule,
    Scaling,
    Want,
)

P, W, A = ScalePhase, Want, ScaleAct
RULE = ScaleRule(least=1, most=4, up_tokens=1000, down_tokens=200, up_wait_s=5.0, down_wait_s=60.0)
ROWS = {
    (P.STEADY, W.MORE): (A.ADD, P.ADDING),
    (P.STEADY, W.FEWER): (A.RETIRE, P.RETIRING),
    (P.RETIRING, W.MORE): (A.RETURN, P.STEADY),
}
ORDER = {ScaleAct.RETIRE: -1, None: 0, ScaleAct.ADD: 1, ScaleAct.RETURN: 1}


def load(num_engines: int, queued: int = 0, running: int = 0, serving: int | None = None) -> PoolLoad:
    serving = num_engines if serving is None else serving
    return PoolLoad(num_engines, serving, 8 * serving, queued, running)


def loads(low: int = 0) -> "st.SearchStrategy[PoolLoad]":
    return st.builds(load, st.integers(low, 6), st.integers(0, 9000), st.integers(0, 60))


@pytest.mark.parametrize("phase", P, ids=lambda phase: phase.name)
@pytest.mark.parametrize("want", W, ids=lambda want: want.name)
def test_every_want_in_every_phase(phase: ScalePhase, want: Want) -> None:
    assert SCALE[phase].get(want) == ROWS.get((phase, want))


CASES: list[tuple[str, PoolLoad, ScaleAct | None]] = [
    ("nothing waits, one is the least", load(1), None),
    ("more than one engine's part waits", load(1, 1001), A.ADD),
    ("not more", load(1, 1000), None),
    ("two engines bear twice of it", load(2, 1001, 9), None),
    ("no more than the most", load(4, 99_999), None),
    ("beyond the most", load(5, 99_999, 40), A.RETIRE),
    ("below the least", load(0, serving=0), A.ADD),
    ("one could do it", load(2, 200, 6), A.RETIRE),
    ("too much would wait", load(2, 201, 6), None),
    ("too little room would be left", load(2, 0, 7), None),
    ("one is away, and may come back", load(3, 0, 0, serving=2), None),
    ("those that serve bear it alone", load(3, 2001, 16, serving=2), A.ADD),
]


@pytest.mark.parametrize(("seen", "act"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_a_load_leads_to_when_it_lasts(seen: PoolLoad, act: ScaleAct | None) -> None:
    scaling = Scaling(RULE)
    scaling.decide(seen, 100.0)
    assert scaling.decide(seen, 160.0) is act or seen.num_engines == 0


def test_a_load_must_last_without_a_break_and_the_least_is_restored_at_once() -> None:
    scaling = Scaling(RULE)
    assert scaling.decide(load(1, 2000), 0.0) is None
    assert scaling.decide(load(1, 2000), 4.9) is None
    assert scaling.decide(load(1, 0), 5.0) is None
    assert scaling.decide(load(1, 2000), 5.1) is None
    assert scaling.decide(load(1, 2000), 10.1) is A.ADD
    assert Scaling(RULE).decide(load(0, serving=0), 0.0) is A.ADD


def test_one_act_ends_before_the_next_and_its_wait_begins_then() -> None:
    scaling = Scaling(replace(RULE, up_wait_s=0.0))
    assert scaling.decide(load(1, 9000), 0.0) is A.ADD
    assert scaling.decide(load(2, 9000, serving=1), 50.0) is None
    scaling.note_done(A.ADD)
    assert scaling.decide(load(2, 0), 100.0) is None
    assert scaling.decide(load(2, 0), 160.0) is A.RETIRE
    assert scaling.decide(load(2, 0), 900.0) is None, "it is retiring"
    assert scaling.phase is P.RETIRING


def test_demand_that_returns_keeps_the_engine_that_is_retiring() -> None:
    scaling = Scaling(RULE)
    scaling.decide(load(2), 0.0)
    assert scaling.decide(load(2), 60.0) is A.RETIRE
    scaling.decide(load(1, 3000), 61.0)
    assert scaling.decide(load(1, 3000), 66.0) is A.RETURN
    assert scaling.phase is P.STEADY


def test_the_late_end_of_a_retirement_that_was_taken_back_is_not_the_end_of_the_act_after_it() -> None:
    scaling = Scaling(replace(RULE, up_wait_s=0.0))
    scaling.decide(load(2), 0.0)
    assert scaling.decide(load(2), 60.0) is A.RETIRE
    assert scaling.decide(load(1, 3000), 61.0) is A.RETURN
    assert scaling.decide(load(2, 9000), 62.0) is A.ADD
    scaling.note_done(A.RETIRE)
    assert scaling.phase is P.ADDING
    assert scaling.decide(load(3, 9000, serving=2), 63.0) is None
    scaling.note_done(A.ADD)
    assert scaling.phase is P.STEADY


def test_retirements_that_demand_takes_back_wait_twice_as_long_each_time_up_to_a_ceiling() -> None:
    scaling, now, waits = Scaling(RULE), 0.0, []
    for _ in range(9):
        began_at = now
        while scaling.decide(load(2), now) is not A.RETIRE:
            now += 1.0
        waits.append((now - began_at) / RULE.down_wait_s)
        while scaling.decide(load(1, 3000), now) is not A.RETURN:
            now += 1.0
    assert [round(wait) for wait in waits] == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert round(waits[-1]) == MAX_PATIENCE


def test_starts_that_fail_are_tried_again_after_waits_that_double_up_to_a_ceiling() -> None:
    scaling, now, waits = Scaling(replace(RULE, up_wait_s=0.0)), 0.0, []
    for _ in range(12):
        failed_at = now
        while scaling.decide(load(1, 9000), now) is None:
            now += 1.0
        waits.append(now - failed_at)
        scaling.note_failed(now)
    assert waits[:5] == [0, 1, 2, 4, 8]
    assert waits[-1] == MAX_REST_S
    while scaling.decide(load(1, 9000), now) is None:
        now += 1.0
    scaling.note_done(A.ADD)
    assert scaling.decide(load(2, 9000), now) is A.ADD, "one that came wipes it out"


@given(loads(1), st.integers(0, 5000), st.integers(0, 40))
def test_more_load_never_leads_to_fewer_engines(seen: PoolLoad, more_queued: int, more_running: int) -> None:
    more = replace(
        seen,
        num_queued_tokens=seen.num_queued_tokens + more_queued,
        num_sequences=seen.num_sequences + more_running,
    )
    acts = []
    for one in (seen, more):
        scaling = Scaling(RULE)
        scaling.decide(one, 0.0)
        acts.append(ORDER[scaling.decide(one, 60.0)])
    assert acts[0] <= acts[1]


@dataclass(slots=True)
class Pool:
    """Engines that come and go at once; `waiting` says how many tokens wait at so many engines."""

    rule: ScaleRule
    engines: int
    running: int
    waiting: Callable[[int], int]
    ways: list[int] = field(default_factory=list)

    def live(self, duration_s: int) -> "Pool":
        scaling = Scaling(self.rule)
        for now in range(duration_s):
            seen = load(self.engines, self.waiting(self.engines), min(self.running, 8 * self.engines))
            act = scaling.decide(seen, float(now))
            if act is not None:
                self.engines += ORDER[act]
                self.ways.append(ORDER[act])
                scaling.note_done(act)
        return self

    @property
    def num_turns(self) -> int:
        return sum(one != other for one, other in pairwise(self.ways))


RULES = st.builds(
    lambda low, more: replace(RULE, down_tokens=low, up_tokens=max(1, low + more)),
    st.integers(0, 1500),
    st.integers(0, 1500),
)


@given(st.integers(1, 6), st.integers(0, 9000), st.integers(0, 60), RULES)
def test_under_a_constant_load_the_number_goes_one_way_and_comes_to_rest_within_its_bounds(
    number: int, queued: int, running: int, rule: ScaleRule
) -> None:
    pool = Pool(rule, number, running, lambda _: queued).live(400)
    assert pool.num_turns == 0
    assert len(pool.ways) <= 5
    assert rule.least <= pool.engines <= rule.most


@given(st.integers(1, 6), st.integers(0, 9000), st.integers(0, 60), RULES)
def test_a_queue_that_goes_with_each_engine_that_comes_turns_the_number_ever_more_seldom(
    number: int, offered: int, running: int, rule: ScaleRule
) -> None:
    pool = Pool(rule, number, running, lambda engines: max(0, offered - 1000 * engines)).live(4000)
    assert pool.num_turns <= 2 + 2 * math.log2(4000 / rule.down_wait_s)
    assert rule.least <= pool.engines <= rule.most


@pytest.mark.parametrize(
    "fields",
    [
        {"least": 0},
        {"least": 5},
        {"down_tokens": 1001},
        {"down_tokens": -1},
        {"up_wait_s": -1.0},
        {"down_wait_s": -1.0},
    ],
    ids=str,
)
def test_a_senseless_rule_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        replace(RULE, **fields)  # type: ignore[arg-type]
