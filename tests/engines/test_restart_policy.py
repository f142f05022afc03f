import pytest

from tidegate.engine.exit_code import EngineExit
from tidegate.engines.life.restart_policy import EngineEnd, GiveUp, Restart, RestartPolicy, RestartSettings

SETTINGS = RestartSettings(first_wait_s=1.0, max_wait_s=5.0, healthy_s=60.0, max_failed_starts=3)
KILLED = -9

LIVES: list[tuple[str, list[EngineEnd], list[Restart | GiveUp]]] = [
    ("the first loss costs the first wait", [EngineEnd(KILLED, 10.0)], [Restart(1.0)]),
    (
        "each loss in a row doubles the wait, up to the cap",
        [EngineEnd(KILLED, 1.0)] * 5,
        [Restart(1.0), Restart(2.0), Restart(4.0), Restart(5.0), Restart(5.0)],
    ),
    (
        "a healthy time starts the row anew",
        [EngineEnd(KILLED, 1.0), EngineEnd(KILLED, 1.0), EngineEnd(KILLED, 60.0), EngineEnd(KILLED, 1.0)],
        [Restart(1.0), Restart(2.0), Restart(1.0), Restart(2.0)],
    ),
    (
        "what never starts is given up",
        [EngineEnd(EngineExit.START_FAILED, None)] * 3,
        [Restart(1.0), Restart(2.0), GiveUp(3)],
    ),
    ("bad options are given up at once", [EngineEnd(EngineExit.USAGE, None)], [GiveUp(1)]),
    (
        "what served once is never given up",
        [EngineEnd(KILLED, 0.0), *[EngineEnd(EngineExit.START_FAILED, None)] * 4, EngineEnd(EngineExit.USAGE, None)],
        [Restart(1.0), Restart(2.0), Restart(4.0), Restart(5.0), Restart(5.0), Restart(5.0)],
    ),
    (
        "an end that was asked for costs no wait and starts the row anew",
        [EngineEnd(KILLED, 1.0), EngineEnd(0, 1.0, was_asked=True), EngineEnd(KILLED, 1.0)],
        [Restart(1.0), Restart(0.0), Restart(1.0)],
    ),
    (
        "asking it to end before it is ready counts for nothing",
        [EngineEnd(0, None, was_asked=True)] * 4,
        [Restart(0.0)] * 4,
    ),
    ("a clean exit that nobody asked for is a loss like any other", [EngineEnd(0, 1.0)], [Restart(1.0)]),
]


@pytest.mark.parametrize(("ends", "decisions"), [life[1:] for life in LIVES], ids=[life[0] for life in LIVES])
def test_each_life_is_decided(ends: list[EngineEnd], decisions: list[Restart | GiveUp]) -> None:
    policy = RestartPolicy(SETTINGS)
    assert [policy.decide(end) for end in ends] == decisions


def test_without_a_bound_nothing_is_given_up_and_the_wait_stays_finite() -> None:
    policy = RestartPolicy(RestartSettings(max_failed_starts=None, max_wait_s=30.0))
    decisions = [policy.decide(EngineEnd(EngineExit.USAGE, None)) for _ in range(5000)]
    assert decisions[-1] == Restart(30.0)
