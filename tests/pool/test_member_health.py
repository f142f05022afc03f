"""When an engine of a pool gets requests: the table row by row, and waits that grow up to a ceiling."""

import pytest

from tidegate.engines.pool.member_health import HealthRule, MemberHealth
from tidegate.engines.pool.member_states import MEMBER, MemberEvent, MemberState

S, E = MemberState, MemberEvent
RULE = HealthRule(num_faults=3, first_wait_s=1.0, max_wait_s=8.0, calm_s=60.0)

ROWS: dict[tuple[MemberState, MemberEvent], MemberState] = {
    (S.STARTING, E.UP): S.READY,
    (S.STARTING, E.DRAIN): S.DRAINING,
    (S.STARTING, E.LEAVE): S.GONE,
    (S.READY, E.DOWN): S.EJECTED,
    (S.READY, E.FAULT): S.EJECTED,
    (S.READY, E.DRAIN): S.DRAINING,
    (S.READY, E.LEAVE): S.GONE,
    (S.EJECTED, E.WAIT_OVER): S.PROBING,
    (S.EJECTED, E.DRAIN): S.DRAINING,
    (S.EJECTED, E.LEAVE): S.GONE,
    (S.PROBING, E.PROOF): S.READY,
    (S.PROBING, E.DOWN): S.EJECTED,
    (S.PROBING, E.FAULT): S.EJECTED,
    (S.PROBING, E.DRAIN): S.DRAINING,
    (S.PROBING, E.LEAVE): S.GONE,
    (S.DRAINING, E.RETURN): S.PROBING,
    (S.DRAINING, E.RETIRE): S.RETIRING,
    (S.RETIRING, E.RETURN): S.PROBING,
    (S.RETIRING, E.LEAVE): S.GONE,
    **{(state, E.RETIRE): S.RETIRING for state in (S.STARTING, S.READY, S.EJECTED, S.PROBING)},
    (S.DRAINING, E.LEAVE): S.GONE,
}


class Health(MemberHealth):
    """With the moves that bring it about that an event happens, whatever the state."""

    def happen(self, event: MemberEvent) -> None:
        now = self.out_until if self.out_until is not None else 5.0
        match event:
            case E.UP:
                self.observe(4.0, is_up=True)
            case E.WAIT_OVER:
                self.observe(now, is_up=True)
            case E.DOWN:
                self.observe(now, is_up=False)
            case E.FAULT:
                for _ in range(RULE.num_faults):
                    self.note_fault(now, "it refused")
            case E.PROOF:
                self.note_answer(now)
            case _:
                words = {E.DRAIN: self.drain, E.RETIRE: self.retire, E.RETURN: self.restore, E.LEAVE: self.leave}
                words[event]()


WAYS: dict[MemberState, list[MemberEvent]] = {
    S.STARTING: [],
    S.READY: [E.UP],
    S.EJECTED: [E.UP, E.DOWN],
    S.PROBING: [E.UP, E.DOWN, E.WAIT_OVER],
    S.DRAINING: [E.UP, E.DRAIN],
    S.RETIRING: [E.UP, E.RETIRE],
    S.GONE: [E.LEAVE],
}
CELLS = [(state, event) for state in S for event in E]


def reach(state: MemberState) -> Health:
    health = Health(RULE)
    for event in WAYS[state]:
        health.happen(event)
    assert health.state is state
    return health


@pytest.mark.parametrize(("state", "event"), CELLS, ids=lambda part: part.name)
def test_every_event_in_every_state(state: MemberState, event: MemberEvent) -> None:
    """Removing a row, or adding one, fails here. The word that it is ready means something else in each state."""
    assert MEMBER[state].get(event) == ROWS.get((state, event))
    health = reach(state)
    health.happen(event)
    says_ready = event in (E.UP, E.WAIT_OVER)
    meant = {S.STARTING: E.UP, S.EJECTED: E.WAIT_OVER}.get(state) if says_ready else event
    if state is S.EJECTED and event is E.UP:
        meant = None  # said before the wait is over
    assert health.state is (ROWS.get((state, meant), state) if meant is not None else state)


def test_waits_double_up_to_a_ceiling_and_begin_anew_after_calm() -> None:
    health, now, waits = MemberHealth(RULE), 0.0, []
    health.observe(now, is_up=True)
    for _ in range(6):
        health.observe(now, is_up=False, reason="gone")
        until = health.out_until
        assert until is not None
        waits.append(until - now)
        health.observe(until - 0.01, is_up=True)
        assert health.state is S.EJECTED
        now = until
        health.observe(now, is_up=True)
        assert health.state is S.PROBING
        health.note_answer(now)
    assert waits == [1, 2, 4, 8, 8, 8]
    assert (health.num_ejections, health.cause) == (6, "gone")
    now += RULE.calm_s
    health.observe(now, is_up=False)
    assert health.out_until == now + 1
    health.observe(now + 1, is_up=True)
    health.observe(now + 1, is_up=False)
    assert health.out_until == now + 1 + 2, "it was not well on its trial, however well it was before"


def test_an_engine_that_is_not_back_stays_out_beyond_its_wait() -> None:
    health = reach(S.EJECTED)
    health.observe(1e6, is_up=False)
    assert health.state is S.EJECTED
    health.observe(1e6, is_up=True)
    assert health.state is S.PROBING


def test_who_only_watches_believes_an_engine_once_its_wait_is_over() -> None:
    health = MemberHealth(HealthRule(first_wait_s=1.0, needs_proof=False))
    health.observe(0.0, is_up=True)
    health.observe(0.0, is_up=False)
    health.observe(0.5, is_up=True)
    assert health.state is S.EJECTED
    health.observe(1.0, is_up=True)
    assert health.state is S.READY
    health.drain()
    health.restore()
    health.observe(1.0, is_up=True)
    assert health.state is S.READY


def test_faults_count_in_a_row_and_one_is_enough_on_trial() -> None:
    health = reach(S.READY)
    for _ in range(5):
        health.note_fault(9.0, "refused")
        health.note_fault(9.0, "refused")
        health.note_answer(9.0)
    assert health.state is S.READY
    for _ in range(3):
        health.note_fault(9.0, "refused")
    assert (health.state, health.cause) == (S.EJECTED, "refused")
    probing = reach(S.PROBING)
    probing.note_fault(9.0, "refused")
    assert probing.state is S.EJECTED


@pytest.mark.parametrize(
    "values", [{"num_faults": 0}, {"first_wait_s": 0.0}, {"first_wait_s": 31.0}, {"calm_s": -1.0}], ids=str
)
def test_a_senseless_rule_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        HealthRule(**values)  # type: ignore[arg-type]
