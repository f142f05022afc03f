"""The pure rules of a session with an engine actor: order, confirmation, leases, boots, what a fault of Ray means."""

from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.ray.boot_watch import RULES, BatchFact, BootWatch, EpochBook, StreamState
from tidegate.engines.ray.command_order import MAX_EARLY, CommandOrder
from tidegate.engines.ray.lease_book import LeaseBook
from tidegate.engines.ray.ray_trouble import SAID, TROUBLES, UNKNOWN, Remedy, trouble_of
from tidegate.engines.ray.unacknowledged import MAX_RESENT, MAX_UNCONFIRMED_BYTES, Unacknowledged


@pytest.mark.parametrize("order", tuple(permutations((1, 2, 3, 4))), ids=str)
def test_batches_are_carried_out_in_order_however_they_come(order: tuple[int, ...]) -> None:
    book: CommandOrder[int] = CommandOrder()
    assert [done for number in order for done in book.take(number, number)] == [1, 2, 3, 4]


@given(st.lists(st.integers(1, 12), max_size=60))
def test_a_batch_is_carried_out_once_however_often_it_comes(numbers: list[int]) -> None:
    book: CommandOrder[int] = CommandOrder()
    done = [one for number in numbers for one in book.take(number, number)]
    assert done == list(range(1, len(done) + 1)) == list(range(1, book.last + 1))
    assert book.num_early == len({number for number in numbers if number > book.last}), "nothing else is kept"


def test_batches_that_wait_for_one_before_them_are_bounded() -> None:
    book: CommandOrder[int] = CommandOrder()
    for number in range(2, MAX_EARLY + 100):
        assert book.take(number, number) == []
    assert book.num_early == MAX_EARLY
    assert book.take(1, 1) == list(range(1, MAX_EARLY + 2)), "what comes in its turn is always taken"


def test_what_is_not_confirmed_is_sent_again_when_its_time_has_come() -> None:
    book = Unacknowledged(2.0)
    for number in (1, 2, 3):
        book.add(number, b"%d" % number, now=float(number))
    assert book.due(2.9) == []
    assert book.due(3.0) == [b"1"]
    assert book.due(4.0) == [b"2"]
    book.confirm(2)
    assert book.due(9.0) == [b"3"]
    book.confirm(3)
    assert (book.due(99.0), book.num_bytes) == ([], 0)


def test_what_was_looked_at_late_waits_from_then_on() -> None:
    book = Unacknowledged(1.0)
    book.add(1, b"1", now=0.0)
    assert [now for now in range(10, 20) if book.due(float(now))] == [10, 12, 16]


def test_an_actor_that_is_only_busy_is_not_buried() -> None:
    book = Unacknowledged(1.0)
    for number in range(1, 10 * MAX_RESENT):
        book.add(number, b"%d" % number, now=0.0)
    times = {now: len(book.due(float(now))) for now in range(1, 100)}
    assert {now: number for now, number in times.items() if number} == dict.fromkeys((1, 3, 7, 15, 31, 63), MAX_RESENT)


def test_unconfirmed_bytes_beyond_the_bound_are_congestion() -> None:
    book = Unacknowledged(2.0)
    book.add(1, bytes(MAX_UNCONFIRMED_BYTES), 0.0)
    assert not book.is_congested
    book.add(2, b"x", 0.0)
    assert book.is_congested
    book.confirm(2)
    assert not book.is_congested


def test_a_lease_ends_with_silence_and_not_before() -> None:
    book = LeaseBook(10.0)
    book.renew("heard", 0.0)
    book.renew("silent", 0.0)
    ends: dict[str, float] = {}
    for now in range(1, 31):
        if now <= 12:
            book.renew("heard", float(now))
        ends |= dict.fromkeys(book.expired(float(now)), float(now))
    assert ends == {"silent": 11.0, "heard": 23.0}
    assert len(book) == 0


def test_a_pause_of_our_own_costs_nobody_the_lease() -> None:
    book = LeaseBook(10.0)
    book.renew("one", 0.0)
    assert book.expired(1.0) == []
    assert book.expired(100.0) == [], "the commands of the meantime have not been read yet"
    assert [now for now in range(101, 120) if book.expired(float(now))] == [111]


def test_a_dropped_session_never_expires() -> None:
    book = LeaseBook(1.0)
    book.renew("one", 0.0)
    book.drop("one")
    book.drop("one")
    assert [book.expired(now / 4) for now in range(20)] == [[]] * 20


_REACHABLE = {(state, fact) for state in StreamState for fact in BatchFact}
_NEVER = {
    # A stream that opens has no boot and no number yet: everything is its first batch, or begins too late.
    *((StreamState.OPENING, fact) for fact in (BatchFact.NEXT, BatchFact.REPEATED, BatchFact.OTHER_BOOT)),
    *((state, BatchFact.FIRST) for state in (StreamState.OPEN, StreamState.BROKEN)),
}


def test_every_fact_of_a_stream_has_its_rule() -> None:
    assert set(RULES) == _REACHABLE - _NEVER


SCENES: dict[str, tuple[list[tuple[str, int]], str]] = {
    "a stream": ([("a", 1), ("a", 2), ("a", 3)], "TTT"),
    "a repeated batch": ([("a", 1), ("a", 2), ("a", 2), ("a", 1), ("a", 3)], "TTDDT"),
    "a lost batch": ([("a", 1), ("a", 3), ("a", 2), ("a", 4)], "TLDD"),
    "another boot": ([("a", 1), ("b", 1), ("b", 2), ("a", 2)], "TLDD"),
    "a stream that begins too late": ([("a", 2), ("a", 1), ("a", 2), ("b", 1)], "LDDD"),
}
"""Batches by boot and number, and the first letters of what is done with them."""


@pytest.mark.parametrize("name", SCENES)
def test_a_stream_is_believed_as_long_as_it_is_whole(name: str) -> None:
    batches, verdicts = SCENES[name]
    watch = BootWatch()
    assert "".join(watch.judge(boot, number).name[0] for boot, number in batches) == verdicts


def test_each_start_of_an_engine_is_an_epoch_and_a_new_stream_to_it_is_none() -> None:
    book = EpochBook()
    assert book.epoch == 0
    assert not book.is_current("a", 1)
    met = [("a", 1), ("a", 1), ("a", 2), ("b", 1), ("b", 1), ("a", 2)]
    assert [book.greet(*one) for one in met] == [1, 1, 2, 3, 3, 4]
    assert book.is_current("a", 2)
    assert not book.is_current("b", 1)


def _fault(*names: str) -> BaseException:
    kind: type = Exception
    for name in reversed(names):
        kind = type(name, (kind,), {})
    return kind("secret words of Ray: 10.0.0.7")  # type: ignore[no-any-return]


FAULTS: dict[str, tuple[tuple[str, ...], Remedy]] = {
    "died": (("ActorDiedError", "RayActorError", "RayError"), Remedy.CREATE),
    "away": (("ActorUnavailableError", "RayActorError", "RayError"), Remedy.ATTACH),
    "another actor error": (("RayActorError", "RayError"), Remedy.CREATE),
    "cancelled": (
        ("RayTaskError(TaskCancelledError)", "RayTaskError", "TaskCancelledError", "RayError"),
        Remedy.ATTACH,
    ),
    "other settings": (("RayTaskError(SpecMismatch)", "RayTaskError", "RayError"), Remedy.WAIT_FOR_OPERATOR),
    "an error of ours": (("RayTaskError(KeyError)", "RayTaskError", "RayError"), Remedy.ATTACH),
    "token": (("AuthenticationError", "RayError"), Remedy.WAIT_FOR_OPERATOR),
    "timeout": (("GetTimeoutError", "RayError", "TimeoutError"), Remedy.ATTACH),
    "no place": (("ActorUnschedulableError", "RayError"), Remedy.WAIT_FOR_OPERATOR),
    "a lost object": (("OwnerDiedError", "ObjectLostError", "RayError"), Remedy.ATTACH),
    "no cluster": (("ConnectionRefusedError", "ConnectionError", "OSError"), Remedy.CREATE),
    "anything else": (("WhatNobodyKnows",), UNKNOWN.remedy),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_ray_has_its_remedy_and_its_words_stay_here(name: str) -> None:
    names, remedy = FAULTS[name]
    trouble = trouble_of(_fault(*names))
    assert trouble.remedy is remedy
    assert "secret" not in trouble.words


def test_a_refused_token_is_known_by_its_name_wherever_it_stands() -> None:
    fault = type("RpcError", (Exception,), {})("Unauthenticated: InvalidAuthToken: wrong")
    assert trouble_of(fault) == TROUBLES["InvalidAuthToken"]


SAYINGS: dict[str, tuple[str, Remedy]] = {
    "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.50.0": (
        "another version",
        Remedy.WAIT_FOR_OPERATOR,
    ),
    "ModuleNotFoundError: No module named 'tidegate.engines'": ("not installed", Remedy.WAIT_FOR_OPERATOR),
    "No module named 'numpy'": ("its actor died", Remedy.CREATE),
}


@pytest.mark.parametrize("said", SAYINGS)
def test_what_only_an_operator_can_mend_is_known_by_what_ray_says_of_it(said: str) -> None:
    words, remedy = SAYINGS[said]
    trouble = trouble_of(type("ActorDiedError", (Exception,), {})(said))
    assert (words in trouble.words, trouble.remedy) == (True, remedy)
    assert said not in trouble.words


def test_what_our_own_code_says_of_a_machine_is_told_as_it_is() -> None:
    fault = _fault("RayTaskError(UnknownKind)", "RayTaskError")
    fault.cause = ValueError("vLLM is not installed.")  # type: ignore[attr-defined]
    trouble = trouble_of(fault)
    assert trouble.words == "its actor cannot make such an engine: vLLM is not installed"
    assert trouble.remedy is Remedy.WAIT_FOR_OPERATOR


MORTAL = {"ActorDiedError", "ActorUnavailableError", "RayActorError", "NodeDiedError", "OutOfMemoryError"}


def test_only_where_the_process_is_gone_requests_are_suspected_of_it() -> None:
    assert {name for name, trouble in TROUBLES.items() if trouble.has_died} == MORTAL


FORGOTTEN = {"ActorAbsent", "HostRetired", "ActorDiedError", "NodeDiedError", "ActorPlacementGroupRemoved"}


def test_an_actor_that_is_gone_for_good_is_looked_for_anew() -> None:
    assert {name for name, trouble in TROUBLES.items() if trouble.remedy is Remedy.CREATE} >= FORGOTTEN


def test_the_page_explains_what_only_an_operator_can_mend() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ray.md").read_text("utf-8")
    for trouble in (*TROUBLES.values(), *SAID.values()):
        if trouble.remedy is Remedy.WAIT_FOR_OPERATOR and trouble != TROUBLES["ActorUnschedulableError"]:
            assert f"`{trouble.words.partition(':')[0]}`" in page


def test_numbers_in_any_order_with_losses_end_whole() -> None:
    dice = Random(7)
    book: CommandOrder[int] = CommandOrder()
    sent = Unacknowledged(0.0)
    done: list[int] = []
    for number in range(1, 200):
        sent.add(number, b"%d" % number, 0.0)
        for data in sent.due(1.0):
            if dice.random() < 0.6:
                done += book.take(int(data), int(data))
        sent.confirm(book.last)
    while data := sent.due(2.0):
        done += [one for number in data for one in book.take(int(number), int(number))]
        sent.confirm(book.last)
    assert done == list(range(1, 200))
