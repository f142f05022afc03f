"""Who is refused after which deaths of the engine."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lifecycle.poison import (
    FIRST_SENTENCE_S,
    FORGOTTEN_AFTER_S,
    LONGEST_SENTENCE_S,
    MAX_DEATHS,
    Blame,
    Death,
    PoisonWatch,
    Suspect,
    death_id,
)

P, A, B = b"poison", b"a", b"b"
DEATHS = [death_id(f"life {number}") for number in range(100)]


def fresh(key: bytes) -> Suspect:
    return Suspect(key, has_output=False)


def running(key: bytes) -> Suspect:
    return Suspect(key, has_output=True)


def refused(deaths: list[list[Suspect]]) -> set[bytes]:
    watch = PoisonWatch()
    for number, suspects in enumerate(deaths):
        watch.note_death(suspects, float(number), DEATHS[number])
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
    watch.note_death([fresh(A), fresh(P)], 0.0, DEATHS[0])
    watch.note_completed(A)
    watch.note_completed(b"nobody")
    watch.note_death([fresh(A), fresh(P)], 1.0, DEATHS[1])
    assert (watch.refuses(A, 2.0), watch.refuses(P, 2.0)) == (False, True)
    assert watch.statistics().num_refusals == 1


def test_a_sentence_ends_and_each_relapse_doubles_it_up_to_a_bound() -> None:
    watch = PoisonWatch()
    now = 0.0
    watch.note_death([fresh(P)], now, DEATHS[0])
    sentence_s = FIRST_SENTENCE_S
    for number in range(1, MAX_DEATHS + 10):
        watch.note_death([fresh(P)], now, DEATHS[number])
        assert watch.refuses(P, now + sentence_s - 0.001)
        now += sentence_s
        assert not watch.refuses(P, now), "it is tried again"
        sentence_s = min(2 * sentence_s, LONGEST_SENTENCE_S)
    assert sentence_s == LONGEST_SENTENCE_S
    watch.note_completed(P)
    assert watch.is_idle


def test_of_the_deaths_that_are_held_against_one_request_the_newest_are_kept() -> None:
    watch = PoisonWatch()
    for number in range(MAX_DEATHS + 5):
        watch.note_death([running(P), running(A)], float(number), DEATHS[number])
    (blame, _) = watch.blames()
    assert [one.death for one in blame.deaths] == DEATHS[5 : MAX_DEATHS + 5]
    assert watch.refuses(P, MAX_DEATHS + 4 + LONGEST_SENTENCE_S - 1.0), "the lightest ones are enough for the longest"


def test_old_blame_is_forgotten() -> None:
    watch = PoisonWatch()
    watch.note_death([fresh(P)], 0.0, DEATHS[0])
    later = FORGOTTEN_AFTER_S + 1.0
    assert not watch.refuses(P, later)
    assert watch.is_idle
    watch.note_death([fresh(A)], later, DEATHS[1])
    watch.note_death([fresh(P)], 3 * later, DEATHS[2])
    assert not watch.refuses(P, 3 * later)
    assert watch.statistics().num_suspects == 1


def test_the_watch_is_bounded_and_lets_the_oldest_go() -> None:  # OVL-8
    watch = PoisonWatch(max_suspects=100)
    for number in range(1000):
        watch.note_death([fresh(b"%d" % number)], float(number), death_id(f"{number}"))
    assert watch.statistics().num_suspects == 100
    watch.note_death([fresh(b"999"), fresh(b"0")], 1000.0, death_id("1000"))
    assert watch.refuses(b"999", 1001.0)
    assert not watch.refuses(b"0", 1001.0)


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
SUSPECTS = st.lists(st.builds(Suspect, KEYS, st.booleans()), max_size=5)


@given(st.lists(st.tuples(SUSPECTS, st.floats(0, 500)), max_size=30))
def test_whoever_completes_between_deaths_is_never_refused(history: list[tuple[list[Suspect], float]]) -> None:
    watch, now = PoisonWatch(), 0.0
    for number, (suspects, pause_s) in enumerate(history):
        now += pause_s
        watch.note_death([*suspects, fresh(b"innocent")], now, DEATHS[number])
        assert not watch.refuses(b"innocent", now)
        watch.note_completed(b"innocent")


@given(st.lists(st.tuples(SUSPECTS, st.floats(0, 500)), max_size=30))
def test_a_culprit_that_is_always_there_is_refused_by_the_fourth_death(
    history: list[tuple[list[Suspect], float]],
) -> None:
    watch, now = PoisonWatch(), 0.0
    for number, (suspects, pause_s) in enumerate(history, 1):
        now += pause_s
        watch.note_death([*suspects, running(b"culprit")], now, DEATHS[number])
        if watch.refuses(b"culprit", now):
            return
        assert number < 4


def joined(number: int = 2) -> list[PoisonWatch]:
    """Returns the watches of several processes, which tell each other everything."""
    watches = [PoisonWatch() for _ in range(number)]
    for teller in watches:
        teller.on_blame = lambda blame, teller=teller: [one.take(blame) for one in watches if one is not teller]  # type: ignore[assignment, misc]
    return watches


def test_what_one_process_has_seen_counts_for_all() -> None:
    first, second = joined()
    first.note_death([fresh(P)], 0.0, DEATHS[0])
    second.note_death([fresh(A)], 1.0, DEATHS[1])
    assert not first.refuses(P, 1.0)
    second.note_death([fresh(P)], 2.0, DEATHS[2])
    assert [watch.refuses(P, 3.0) for watch in (first, second)] == [True, True]
    assert not first.refuses(A, 3.0)
    first.note_completed(A)
    assert second.statistics().num_suspects == 1
    late = PoisonWatch()
    for blame in second.blames():
        late.take(blame)
    assert late.refuses(P, 3.0)


def test_records_that_are_taken_in_are_bounded_too() -> None:
    watch = PoisonWatch(max_suspects=2)
    for number in range(4):
        watch.take(Blame(bytes([number]), (Death(DEATHS[number], 2, float(number)),)))
    assert [blame.fingerprint for blame in watch.blames()] == [b"\x02", b"\x03"]


PAUSES_S = [0.0, 1e-9, 0.1, 5.0, FORGOTTEN_AFTER_S / 2]


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_one_death_counts_once_however_late_another_process_sees_it(pause_s: float) -> None:
    first, second = joined()
    first.note_death([fresh(P), running(A)], 0.0, DEATHS[0])
    assert second.note_death([fresh(P), fresh(A)], pause_s, DEATHS[0]) == 0
    assert not any(watch.refuses(key, pause_s) for watch in (first, second) for key in (P, A))
    assert [len(blame.deaths) for watch in (first, second) for blame in watch.blames()] == [1, 1, 1, 1]
    assert {blame.deaths[0].weight for blame in first.blames()} == {2}, "as grave as anybody saw it"
    assert {blame.deaths[0].died_at for blame in second.blames()} == {0.0}, "when it was first seen"


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_two_deaths_are_two_however_soon_one_follows_the_other(pause_s: float) -> None:
    first, second = joined()
    first.note_death([fresh(P)], 0.0, DEATHS[0])
    assert second.note_death([fresh(P)], pause_s, DEATHS[1]) == 1
    assert [watch.refuses(P, pause_s) for watch in (first, second)] == [True, True]


def test_a_death_that_two_processes_see_before_either_is_told_counts_once() -> None:
    apart = [PoisonWatch(), PoisonWatch()]
    told: list[Blame] = []
    for watch in apart:
        watch.on_blame = told.append
        watch.note_death([fresh(P)], 0.0, DEATHS[0])
    for watch in apart:
        for blame in told:
            watch.take(blame)
    assert not any(watch.refuses(P, 1.0) for watch in apart), "both had it in the engine when it died, once"
    for watch in apart:
        watch.note_death([fresh(P)], 1.0, DEATHS[1])
    assert [watch.refuses(P, FIRST_SENTENCE_S + 0.9) for watch in apart] == [True, True]
    assert not any(watch.refuses(P, FIRST_SENTENCE_S + 1.0) for watch in apart), "one sentence, and not two"


def test_two_processes_that_saw_one_death_each_condemn_when_they_hear_of_the_other() -> None:
    apart = [PoisonWatch(), PoisonWatch()]
    for number, watch in enumerate(apart):
        watch.note_death([fresh(P)], float(number), DEATHS[number])
    heard = [watch.blames() for watch in apart]
    for watch, blames in zip(apart, reversed(heard), strict=True):
        assert not watch.refuses(P, 1.5)
        for blame in blames:
            watch.take(blame)
        assert watch.refuses(P, 1.5)


SIGHTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), min_size=1, max_size=15)


@given(SIGHTS, st.randoms(use_true_random=False))
def test_whoever_has_heard_everything_holds_the_same_in_whatever_order_it_came(
    sights: list[tuple[int, int, bool]], dice: Random
) -> None:
    watches, told = [PoisonWatch() for _ in range(3)], []
    for watch in watches:
        watch.on_blame = told.append
    for now, (teller, death, has_output) in enumerate(sights):
        watches[teller].note_death([Suspect(P, has_output), running(A)], float(now // 2), DEATHS[death])
    for watch in watches:
        dice.shuffle(told)
        for blame in told:
            watch.take(blame)
    assert len({tuple(sorted(watch.blames(), key=lambda one: one.fingerprint)) for watch in watches}) == 1
    seen = {death for _, death, _ in sights}
    assert {len(blame.deaths) for watch in watches for blame in watch.blames()} == {len(seen)}
