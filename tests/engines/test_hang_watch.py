"""When an engine counts as hung, by what was seen at each tick."""

import os

import pytest

from tidegate.engines.life.condition import EngineCondition, EnginePhase, describe_end
from tidegate.engines.local.cpu_time import cpu_seconds
from tidegate.engines.local.hang_watch import BUSY_FACTOR, Hang, HangWatch, Signs
from tidegate.engines.local.supervisor import SupervisorSettings

PATIENCE = 3


def verdicts(signs: list[Signs]) -> list[Hang | None]:
    watch = HangWatch(PATIENCE)
    return [watch.tick(sign) for sign in signs]


def life(*, ticks: int, hears: bool, steps: bool, work: bool, computes: bool | None) -> list[Signs]:
    return [
        Signs(
            num_heard=tick if hears else 1,
            num_steps=tick if steps else 1,
            has_work=work,
            cpu_s=None if computes is None else tick * 0.5 if computes else 7.0,
        )
        for tick in range(ticks)
    ]


CASES: list[tuple[str, dict[str, bool | None], Hang | None, int | None]] = [
    ("at rest", {"hears": True, "steps": False, "work": False, "computes": False}, None, None),
    ("at work", {"hears": True, "steps": True, "work": True, "computes": True}, None, None),
    ("blocked", {"hears": False, "steps": False, "work": True, "computes": False}, Hang.STUCK, PATIENCE),
    ("blocked without work", {"hears": False, "steps": False, "work": False, "computes": False}, Hang.STUCK, PATIENCE),
    (
        "silent where nobody tells its processor time",
        {"hears": False, "steps": False, "work": True, "computes": None},
        Hang.STUCK,
        PATIENCE,
    ),
    (
        "an endless computation",
        {"hears": False, "steps": False, "work": True, "computes": True},
        Hang.BUSY,
        PATIENCE * BUSY_FACTOR,
    ),
    (
        "it answers pings and steps no more",
        {"hears": True, "steps": False, "work": True, "computes": True},
        Hang.IDLE,
        PATIENCE,
    ),
]


@pytest.mark.parametrize(("signs", "hang", "at"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_way_of_life_is_judged(signs: dict[str, bool], hang: Hang | None, at: int | None) -> None:  # DL-5
    found = verdicts(life(ticks=100, **signs))
    first = next((index for index, verdict in enumerate(found) if verdict is not None), None)
    assert (first, None if first is None else found[first]) == (at, hang)


def test_one_huge_prefill_is_not_taken_for_a_hang() -> None:
    """Silent and busy for many times the patience of a blocked one, then it answers."""
    silent = life(ticks=PATIENCE * BUSY_FACTOR - 1, hears=False, steps=False, work=True, computes=True)
    answer = Signs(num_heard=2, num_steps=2, has_work=True, cpu_s=100.0)
    assert set(verdicts([*silent, answer, answer, answer])) == {None}


def test_a_step_now_and_then_is_enough() -> None:
    signs = [Signs(num_heard=tick, num_steps=tick // PATIENCE, has_work=True, cpu_s=0.0) for tick in range(100)]
    assert set(verdicts(signs)) == {None}


def test_a_pause_of_our_own_is_one_tick() -> None:
    """However long nobody looked, one look without news is one tick."""
    signs = [Signs(1, 1, True, 0.0), Signs(1, 1, True, 0.0), Signs(2, 2, True, 0.0)]
    assert set(verdicts(signs)) == {None}


def test_held_requests_are_no_work_and_new_work_begins_a_new_count() -> None:
    resting = [Signs(tick, 1, has_work=False, cpu_s=0.0) for tick in range(50)]
    working = [Signs(50 + tick, 1, has_work=True, cpu_s=0.0) for tick in range(PATIENCE)]
    assert set(verdicts([*resting, *working])) == {None}


def test_there_are_several_looks_within_any_patience() -> None:
    assert SupervisorSettings(stall_timeout_s=60.0).tick_s == 5.0
    assert SupervisorSettings(stall_timeout_s=0.4).tick_s == 0.1


def test_processor_time_is_read_where_there_is_such_a_process() -> None:
    assert cpu_seconds(2**22 + 1) is None
    own = cpu_seconds(os.getpid())
    assert own is None or own > 0.0


CONDITIONS: list[tuple[EngineCondition, str]] = [
    (EngineCondition(), "the engine is starting"),
    (EngineCondition(EnginePhase.READY), "the engine is ready"),
    (EngineCondition(EnginePhase.ENDING, "the connection broke"), "the engine has gone: the connection broke"),
    (
        EngineCondition(EnginePhase.WAITING, "it was killed by SIGKILL", 1, 107.2),
        "the engine has ended and is started again in 8 s: it was killed by SIGKILL",
    ),
    (
        EngineCondition(EnginePhase.STARTING, "it was killed by SIGKILL", 2),
        "the engine is starting again: it was killed by SIGKILL",
    ),
    (
        EngineCondition(EnginePhase.WAITING, "exit code 4 (a forward pass failed)", 5, 100.0),
        "crash loop, 5 ends in a row; the engine has ended and is started again in 0 s: "
        "exit code 4 (a forward pass failed)",
    ),
    (EngineCondition(EnginePhase.FAILED, "exit code 3 (no model)"), "the engine was given up: exit code 3 (no model)"),
]


@pytest.mark.parametrize(("condition", "words"), CONDITIONS, ids=[words for _, words in CONDITIONS])
def test_a_condition_says_why(condition: EngineCondition, words: str) -> None:
    assert condition.describe(100.0) == words


ENDS: list[tuple[int, str | None, str | None, bool, str]] = [
    (-9, "SIGKILL", None, False, "it was killed by SIGKILL"),
    (
        -9,
        "SIGKILL",
        "it had work and made no step for 60 s",
        False,
        "it had work and made no step for 60 s, and was killed",
    ),
    (0, None, None, True, "a restart was asked for"),
    (0, None, None, False, "exit code 0 (it ended by itself)"),
    (4, None, None, False, "exit code 4 (a forward pass failed)"),
    (77, None, None, False, "exit code 77 (an unknown reason)"),
]


@pytest.mark.parametrize(("code", "signal", "verdict", "was_asked", "words"), ENDS, ids=[row[-1] for row in ENDS])
def test_an_end_is_told(code: int, signal: str | None, verdict: str | None, was_asked: bool, words: str) -> None:
    assert describe_end(code, signal, verdict, was_asked=was_asked) == words
