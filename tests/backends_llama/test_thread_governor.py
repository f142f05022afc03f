import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tidegate.backends.llama_cpp.thread_governor import MAX_PATIENCE_S, ThreadGovernor

PASS_S = 0.02


def run(governor: ThreadGovernor, seconds: float, presence: Callable[[int], float]) -> list[int]:
    """Feeds passes for so long; `presence` by number of threads. Returns the number used in each pass."""
    used = []
    for _ in range(round(seconds / PASS_S)):
        used.append(governor.num_threads)
        governor.feed(PASS_S, PASS_S * governor.num_threads * presence(governor.num_threads))
    return used


def crowded_from(limit: int) -> Callable[[int], float]:
    """A machine where threads from this number on lose their cores to others."""
    return lambda num_threads: 0.3 if num_threads >= limit else 0.98


def test_undisturbed_all_threads_stay() -> None:
    assert set(run(ThreadGovernor(8), 60, lambda _: 0.97)) == {8}


def test_one_short_disturbance_changes_nothing() -> None:
    governor = ThreadGovernor(2)
    assert not governor.feed(0.01, 0.002)
    assert set(run(governor, 1, lambda _: 1.0)) == {2}


def test_when_a_core_is_taken_the_threads_go_down_within_a_stretch() -> None:
    used = run(ThreadGovernor(2), 1, crowded_from(2))
    assert used[:5] == [2] * 5
    assert set(used[6:]) == {1}


def test_many_threads_go_down_until_they_have_room() -> None:
    used = run(ThreadGovernor(16), 2, crowded_from(9))
    assert used[-1] < 9
    assert min(used) >= 6


def test_when_the_others_leave_all_threads_come_back() -> None:
    governor = ThreadGovernor(4)
    run(governor, 5, crowded_from(2))
    assert governor.num_threads == 1
    run(governor, 60, lambda _: 1.0)
    assert governor.num_threads == 4


def test_vain_trials_become_rare() -> None:
    used = run(ThreadGovernor(2), 600, crowded_from(2))
    num_trials = sum(b > a for a, b in itertools.pairwise(used))
    assert 5 <= num_trials <= 600 / MAX_PATIENCE_S + 6
    assert used.count(2) < 0.02 * len(used)


def test_after_a_trial_that_held_patience_is_short_again() -> None:
    governor = ThreadGovernor(2)
    run(governor, 300, crowded_from(2))
    run(governor, 70, lambda _: 1.0)
    assert governor.num_threads == 2
    run(governor, 1, crowded_from(2))
    assert governor.num_threads == 1
    run(governor, 3, lambda _: 1.0)
    assert governor.num_threads == 2


def test_nothing_is_tried_while_even_one_thread_lacks_its_core() -> None:
    governor = ThreadGovernor(2)
    used = run(governor, 60, lambda _: 0.4)
    assert set(used[10:]) == {1}


def test_one_thread_is_the_least() -> None:
    assert set(run(ThreadGovernor(1), 30, lambda _: 0.1)) == {1}


@given(st.integers(1, 64), st.lists(st.tuples(st.floats(0, 3), st.floats(0, 100)), max_size=60))
def test_the_number_stays_in_its_bounds_and_changes_are_told(most: int, passes: list[tuple[float, float]]) -> None:
    governor = ThreadGovernor(most)
    for wall_s, cpu_s in passes:
        before = governor.num_threads
        assert governor.feed(wall_s, cpu_s) == (governor.num_threads != before)
        assert 1 <= governor.num_threads <= most
