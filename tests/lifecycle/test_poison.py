"""Who is refused after which deaths of the engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lifecycle.poison import (
    FIRST_SENTENCE_S,
    FORGOTTEN_AFTER_S,
    LONGEST_SENTENCE_S,
    SAME_DEATH_S,
    Blame,
    PoisonWatch,
    Suspect,
)

P, A, B = b"poison", b"a", b"b"


def fresh(key: bytes) -> Suspect:
    return Suspect(key, has_output=False)


def running(key: bytes) -> Suspect:
    return Suspect(key, has_output=True)


def refused(deaths: list[list[Suspect]]) -> set[bytes]:
    watch = PoisonWatch()
    for number, suspects in enumerate(deaths):
        watch.note_death(suspects, float(number))
    return {key for key in (P, A, B) if watch.refuses(key, float(len(deaths)))}


HISTORIES: list[tuple[str, list[list[Suspect]], set[bytes]]] = [
    ("one death condemns nobody, alone or not", [[fresh(P)]], set()),
    ("alone at two deaths", [[running(P)], [running(P)]], {P}),
    ("in its prefill at two deaths", [[fresh(P), running(A)], [fresh(P), running(A)]], {P}),
    ("alone once, then in its prefill among others", [[running(P)], [fresh(P), running(A)]], {P}),
    ("a long stream among others, twice", [[running(P), running(A)]] * 2, set()),
    (
        "the same, four times: those who shared all four",
        [[running(P), running(A)]] * 3 + [[running(P), running(B)]],
        {P},
    ),
    ("two requests of one fingerprint are one suspect, the less proven counts", [[fresh(P), running(P)]] * 2, {P}),
    ("an empty engine", [[], []], set()),
    ("neighbours that arrive with it once", [[fresh(P), fresh(A)], [fresh(P), fresh(B)]], {P}),
]


@pytest.mark.parametrize(("deaths", "expected"), [row[1:] for row in HISTORIES], ids=[row[0] for row in HISTORIES])
def test_a_history_of_deaths_condemns(deaths: list[list[Suspect]], expected: set[bytes]) -> None:
    assert refused(deaths) == expected


def test_what_completes_is_cleared_however_much_blame_it_had() -> None:
    watch = PoisonWatch()
    watch.note_death([fresh(A), fresh(P)], 0.0)
    watch.note_completed(A)
    watch.note_completed(b"nobody")
    watch.note_death([fresh(A), fresh(P)], 1.0)
    assert (watch.refuses(A, 2.0), watch.refuses(P, 2.0)) == (False, True)
    assert watch.statistics().num_refusals == 1


def test_a_sentence_ends_and_each_relapse_doubles_it_up_to_a_bound() -> None:
    watch = PoisonWatch()
    now = 0.0
    watch.note_death([fresh(P)], now)
    sentence_s = FIRST_SENTENCE_S
    for _ in range(10):
        watch.note_death([fresh(P)], now)
        assert watch.refuses(P, now + sentence_s - 0.001)
        now += sentence_s
        assert not watch.refuses(P, now), "it is tried again"
        sentence_s = min(2 * sentence_s, LONGEST_SENTENCE_S)
    watch.note_completed(P)
    assert watch.is_idle


def test_old_blame_is_forgotten() -> None:
    watch = PoisonWatch()
    watch.note_death([fresh(P)], 0.0)
    later = FORGOTTEN_AFTER_S + 1.0
    assert not watch.refuses(P, later)
    assert watch.is_idle
    watch.note_death([fresh(A)], later)
    watch.note_death([fresh(P)], 3 * later)
    assert not watch.refuses(P, 3 * later)
    assert watch.statistics().num_suspects == 1


def test_the_watch_is_bounded_and_lets_the_oldest_go() -> None:  # OVL-8
    watch = PoisonWatch(max_suspects=100)
    for number in range(1000):
        watch.note_death([fresh(b"%d" % number)], float(number))
    assert watch.statistics().num_suspects == 100
    watch.note_death([fresh(b"999"), fresh(b"0")], 1000.0)
    assert watch.refuses(b"999", 1001.0)
    assert not watch.refuses(b"0", 1001.0)


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
SUSPECTS = st.lists(st.builds(Suspect, KEYS, st.booleans()), max_size=5)


@given(st.lists(st.tuples(SUSPECTS, st.floats(0, 500)), max_size=30))
def test_whoever_completes_between_deaths_is_never_refused(history: list[tuple[list[Suspect], float]]) -> None:
    watch, now = PoisonWatch(), 0.0
    for suspects, pause_s in history:
        now += pause_s
        watch.note_death([*suspects, fresh(b"innocent")], now)
        assert not watch.refuses(b"innocent", now)
        watch.note_completed(b"innocent")


@given(st.lists(st.tuples(SUSPECTS, st.floats(0, 500)), max_size=30))
def test_a_culprit_that_is_always_there_is_refused_by_the_fourth_death(
    history: list[tuple[list[Suspect], float]],
) -> None:
    watch, now = PoisonWatch(), 0.0
    for number, (suspects, pause_s) in enumerate(history, 1):
        now += pause_s
        watch.note_death([*suspects, running(b"culprit")], now)
        if watch.refuses(b"culprit", now):
            return
        assert number < 4


def joined(number: int = 2) -> list[PoisonWatch]:
    """Returns the watches of several processes, which tell each other everything."""
    watches = [PoisonWatch() for _ in range(number)]
    for teller in watches:
        teller.on_blame = lambda blame, teller=teller: [one.take(blame) for one in watches if one is not teller]  # type: ignore[assignment, misc]
    return watches


def test_what_one_process_has_seen_counts_for_all_and_one_death_that_two_saw_counts_once() -> None:
    first, second = joined()
    first.note_death([fresh(P)], 0.0)
    second.note_death([fresh(A)], 1.0)
    assert not first.refuses(P, 1.0)
    second.note_death([fresh(P)], 2.0)
    assert [watch.refuses(P, 3.0) for watch in (first, second)] == [True, True]
    assert not first.refuses(A, 3.0)
    first.note_completed(A)
    assert second.statistics().num_suspects == 1
    late = PoisonWatch()
    for blame in second.blames():
        late.take(blame)
    assert late.refuses(P, 3.0)
    apart = [PoisonWatch(), PoisonWatch()]
    told: list[Blame] = []
    for watch in apart:
        watch.on_blame = told.append
        watch.note_death([fresh(P)], 0.0)
    for watch in apart:
        for blame in told:
            watch.take(blame)
    assert not any(watch.refuses(P, 1.0) for watch in apart), "both had it in the engine when it died, once"


def test_records_that_are_taken_in_are_bounded_too() -> None:
    watch = PoisonWatch(max_suspects=2)
    for number in range(4):
        watch.take(Blame(bytes([number]), 1, 2, 0, float(number), None))
    assert [blame.fingerprint for blame in watch.blames()] == [b"\x02", b"\x03"]


def test_a_death_that_was_told_before_it_is_seen_here_counts_once_and_the_next_one_again() -> None:
    first, second = PoisonWatch(), PoisonWatch()
    first.on_blame = second.take
    first.note_death([fresh(P), running(A)], 0.0)
    assert second.note_death([fresh(P), fresh(A)], 0.1) == 0, "the same death"
    assert not second.refuses(P, 0.2)
    assert second.note_death([fresh(P), running(B)], 0.3) == 1, "another one, however soon"
    assert second.refuses(P, 0.4)


def test_a_death_long_after_one_that_was_told_is_another() -> None:
    first, second = PoisonWatch(), PoisonWatch()
    first.on_blame = second.take
    first.note_death([fresh(P)], 0.0)
    assert second.note_death([fresh(P)], SAME_DEATH_S + 0.1) == 1
