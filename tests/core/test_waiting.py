"""The waiting queue against a sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.sequence import LiveRequest, Sequence
from tidegate.core.waiting import WaitingQueue
from tidegate.testing.requests import make_request


def _sequence(arrival: int, *, priority: int = 0, not_before: float = 0.0) -> Sequence:
    request = make_request(f"r{arrival}", "a", priority=priority)
    live = LiveRequest(request, arrival=arrival, arrived_at=0.0, first_key=arrival)
    live.sequences[0].not_before = not_before
    return live.sequences[0]


def test_lower_priority_values_come_first_then_older_requests() -> None:
    queue = WaitingQueue()
    late, first, second = _sequence(0, priority=1), _sequence(2, priority=-1), _sequence(3, priority=-1)
    for sequence in (second, late, first):
        queue.add(sequence)
    order = []
    while (found := queue.first(0.0)[0]) is not None:
        order.append(found)
        queue.remove(found)
    assert order == [first, second, late]


def test_a_sequence_whose_time_has_not_come_is_passed_and_keeps_its_place() -> None:
    queue = WaitingQueue()
    early, ready = _sequence(0, not_before=5.0), _sequence(1)
    queue.add(early)
    queue.add(ready)
    assert queue.first(4.9) == (ready, 0)
    assert queue.next_due_at(4.9) == 5.0
    assert queue.first(5.0) == (early, 0)
    assert queue.next_due_at(5.0) is None
    assert len(queue) == 2


def test_skipped_ones_stay_and_too_many_give_up() -> None:
    queue = WaitingQueue()
    sequences = [_sequence(arrival) for arrival in range(4)]
    for sequence in sequences:
        queue.add(sequence)
    is_early = lambda sequence: sequence.key < 2  # noqa: E731 - a predicate
    assert queue.first(0.0, skip=is_early, max_skipped=2) == (sequences[2], 2)
    assert queue.first(0.0, skip=is_early, max_skipped=1) == (None, 1)
    assert queue.first(0.0) == (sequences[0], 0)


def test_one_removed_and_added_again_is_there_once() -> None:
    queue = WaitingQueue()
    sequence = _sequence(0)
    for _ in range(3):
        queue.add(sequence)
        assert queue.first(0.0) == (sequence, 0)
        assert queue.first(0.0, skip=lambda other: other is sequence, max_skipped=9) == (None, 1)
        queue.remove(sequence)
        assert sequence not in queue
    assert queue.first(0.0) == (None, 0)


_ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "look"]), st.integers(0, 11), st.integers(0, 6)), max_size=80
)


@given(_ACTIONS)
def test_it_behaves_as_a_sorted_list(actions: list[tuple[str, int, int]]) -> None:
    pool = [_sequence(arrival, priority=arrival % 3, not_before=float(arrival % 5)) for arrival in range(12)]
    queue, model = WaitingQueue(), set[Sequence]()
    now = 0.0
    for action, index, wait in actions:
        sequence = pool[index]
        if action == "add" and sequence not in model:
            queue.add(sequence)
            model.add(sequence)
        elif action == "remove" and sequence in model:
            queue.remove(sequence)
            model.remove(sequence)
        elif action == "look":
            now += wait
        ready = sorted((other for other in model if other.not_before <= now), key=lambda other: other.order)
        assert queue.first(now)[0] is (ready[0] if ready else None)
        assert queue.next_due_at(now) == min((s.not_before for s in model if s.not_before > now), default=None)
        assert len(queue) == len(model)
