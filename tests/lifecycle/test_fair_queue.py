"""FairQueue: priority moves places in line, then turns between keys by price, then arrival; and nobody starves."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegate.errors import InternalError
from tidegate.inference.turn_rule import TurnRule
from tidegate.lifecycle.fair_queue import FairQueue
from tidegate.lifecycle.ticket import Ticket


def ticket(
    ticket_id: str, key_id: str = "a", *, num_blocks: int = 1, priority: int = 0, received_at: float = 0.0
) -> Ticket:
    return Ticket(ticket_id, key_id, 1, 1, 1, num_blocks, received_at, priority)


def pop_all(queue: FairQueue) -> list[str]:
    return [queue.pop().ticket_id for _ in range(len(queue))]


ORDERS = [
    ("one key: first come, first served", ["a1", "a2", "a3"], "a1 a2 a3"),
    ("two keys take turns, whoever sent more", ["a1", "a2", "a3", "a4", "b1", "b2"], "a1 b1 a2 b2 a3 a4"),
    ("a dear request is paid off before the next turn", ["a1:3", "a2", "b1", "b2", "b3", "b4"], "a1 b1 b2 b3 a2 b4"),
    ("lower priority values first", ["a1!5", "b1", "a2!-5", "c1!-5"], "a2 c1 b1 a1"),
    ("a free request still takes a turn", ["a1:0", "a2:0", "b1:0"], "a1 b1 a2"),
]


def parse(word: str) -> Ticket:
    name, _, priority = word.partition("!")
    name, _, price = name.partition(":")
    return ticket(name, name[0], num_blocks=int(price or 1), priority=int(priority or 0))


@pytest.mark.parametrize(("arrivals", "order"), [case[1:] for case in ORDERS], ids=[case[0] for case in ORDERS])
def test_the_order(arrivals: list[str], order: str) -> None:
    queue = FairQueue()
    for word in arrivals:
        queue.add(parse(word))
    assert [waiting.ticket_id for waiting in queue.in_order()] == order.split()
    assert pop_all(queue) == order.split()
    assert queue.first() is None


def test_what_a_key_withdraws_costs_it_nothing() -> None:
    queue = FairQueue()
    for i in range(50):
        queue.add(ticket(f"a{i}"))
    queue.add(ticket("b0", "b"))
    for i in range(49):
        queue.remove(f"a{i}")
    queue.add(ticket("b1", "b"))
    assert pop_all(queue) == ["a49", "b0", "b1"]


def test_a_key_that_comes_back_neither_saved_up_turns_nor_owes_any() -> None:
    queue = FairQueue()
    queue.add(ticket("b0", "b"))
    for i in range(6):
        queue.add(ticket(f"a{i}"))
    assert [queue.pop().ticket_id for _ in range(4)] == ["b0", "a0", "a1", "a2"]
    queue.add(ticket("b1", "b"))
    queue.add(ticket("b2", "b"))
    assert pop_all(queue) == ["b1", "a3", "b2", "a4", "a5"]


def test_leaving_and_coming_back_does_not_pay_a_debt() -> None:
    queue = FairQueue()
    queue.add(ticket("a0", num_blocks=10))
    for i in range(12):
        queue.add(ticket(f"b{i}", "b"))
    queue.pop()
    queue.add(ticket("a1"))
    assert pop_all(queue)[:12] == [*(f"b{i}" for i in range(11)), "a1"]


def test_one_ticket_waits_once() -> None:
    queue = FairQueue()
    queue.add(ticket("a1"))
    with pytest.raises(InternalError):
        queue.add(ticket("a1"))
    with pytest.raises(KeyError):
        queue.remove("a2")
    queue.pop()
    with pytest.raises(InternalError):
        queue.pop()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_no_key_waits_for_more_than_its_share_of_the_others_work(
    others: list[tuple[int, int]], own: list[int]
) -> None:  # OVL-5
    """Whatever the others have sent, before and after: until our i-th request goes, each of them is served no more than
    what we were, and one request of its own."""
    queue = FairQueue()
    for i, (key, price) in enumerate(others[::2]):
        queue.add(ticket(f"x{i}", f"k{key}", num_blocks=price))
    for i, price in enumerate(own):
        queue.add(ticket(f"me{i}", "me", num_blocks=price))
    for i, (key, price) in enumerate(others[1::2]):
        queue.add(ticket(f"y{i}", f"k{key}", num_blocks=price))
    served: defaultdict[str, int] = defaultdict(int)
    dearest = max((price for _, price in others), default=0)
    num_left = len(own)
    while num_left:
        going = queue.pop()
        if going.key_id == "me":
            assert all(served[key] <= served["me"] + dearest for key in set(served) - {"me"})
            num_left -= 1
        served[going.key_id] += going.num_blocks


STEP_S = 2.0


@settings(max_examples=150, deadline=None)
@given(st.integers(-3, 3), st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("abc")), max_size=60))
def test_nobody_waits_for_more_than_the_head_start_of_more_urgent_priorities(
    own: int, others: list[tuple[int, str]]
) -> None:
    """One comes each second, more than ever go: who came too late to pass us goes after us, unless it takes its
    key's turn before an older one of its level."""
    queue = FairQueue(TurnRule(STEP_S))
    queue.add(ticket("me", "me", priority=own))
    newcomers = [*others, *[(-3, "a")] * 40]
    places = {"me": own * STEP_S}
    served: list[str] = []
    for second, (priority, key) in enumerate(newcomers):
        arriving = ticket(f"t{second}", key, priority=priority, received_at=float(second))
        queue.add(arriving)
        places[arriving.ticket_id] = second + priority * STEP_S
        served.append(queue.pop().ticket_id)
    assert "me" in served, "starved"
    early = sum(place <= places["me"] for name, place in places.items() if name != "me")
    # While an older one of a level waits behind its own key's requests, each of the two other keys has a turn.
    assert served.index("me") <= 3 * early


def test_where_priorities_do_not_count_only_arrival_and_turns_do() -> None:
    queue = FairQueue(TurnRule(None))
    for word in ["a1!5", "b1", "a2!-5", "c1!-5"]:
        queue.add(parse(word))
    assert [waiting.ticket_id for waiting in queue.in_order()] == ["a1", "b1", "c1", "a2"]
    assert pop_all(queue) == ["a1", "b1", "c1", "a2"]


def test_a_step_of_priority_is_worth_its_seconds_and_no_more() -> None:
    queue = FairQueue(TurnRule(STEP_S))
    queue.add(ticket("patient", "a", priority=5, received_at=0.0))
    queue.add(ticket("in_time", "b", priority=0, received_at=9.0))
    queue.add(ticket("tie", "c", priority=0, received_at=10.0))
    queue.add(ticket("late", "d", priority=-1, received_at=12.5))
    assert pop_all(queue) == ["in_time", "tie", "patient", "late"]


class Lines(RuleBasedStateMachine):
    """Any order of coming, going and leaving, against a plain model of the same rules."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue(TurnRule(STEP_S))
        self.now = 0.0
        self.waiting: list[Ticket] = []
        self.tags: dict[tuple[int, str], int] = {}
        self.virtual: dict[int, int] = {}
        self.num_added = 0

    def tag(self, priority: int, key: str) -> int:
        return self.tags.get((priority, key), 0)

    def next_up(self) -> Ticket:
        oldest: dict[int, Ticket] = {}
        for waiting in self.waiting:
            oldest.setdefault(waiting.priority, waiting)
        priority = min(oldest, key=lambda level: (oldest[level].received_at + level * STEP_S, level))
        heads: dict[str, Ticket] = {}
        for waiting in self.waiting:
            if waiting.priority == priority:
                heads.setdefault(waiting.key_id, waiting)
        return min(heads.values(), key=lambda head: (self.tag(priority, head.key_id), self.waiting.index(head)))

    @rule(
        key=st.sampled_from("abc"), num_blocks=st.integers(0, 5), priority=st.integers(-1, 1), after=st.integers(0, 3)
    )
    def add(self, key: str, num_blocks: int, priority: int, after: int) -> None:
        self.now += after
        name = f"t{self.num_added}"
        arriving = ticket(name, key, num_blocks=num_blocks, priority=priority, received_at=self.now)
        self.num_added += 1
        if all((other.key_id, other.priority) != (key, priority) for other in self.waiting):
            self.tags[priority, key] = max(self.tag(priority, key), self.virtual.get(priority, 0))
        self.waiting.append(arriving)
        self.queue.add(arriving)

    @rule()
    def pop(self) -> None:
        if self.waiting:
            expected = self.next_up()
            assert self.queue.first() is expected
            assert self.queue.pop() is expected
            place = (expected.priority, expected.key_id)
            self.virtual[expected.priority] = max(self.virtual.get(expected.priority, 0), self.tags[place])
            self.tags[place] += max(1, expected.num_blocks)
            self.forget(expected)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.waiting:
            leaving = data.draw(st.sampled_from(self.waiting))
            assert self.queue.remove(leaving.ticket_id) is leaving
            self.forget(leaving)

    def forget(self, gone: Ticket) -> None:
        self.waiting.remove(gone)
        if all(other.priority != gone.priority for other in self.waiting):
            self.virtual.pop(gone.priority, None)
            self.tags = {place: tag for place, tag in self.tags.items() if place[0] != gone.priority}

    @invariant()
    def all_who_came_and_stayed_are_there(self) -> None:
        assert len(self.queue) == len(self.waiting)
        in_order = list(self.queue.in_order())
        assert sorted(waiting.ticket_id for waiting in in_order) == sorted(w.ticket_id for w in self.waiting)
        assert self.queue.first() is (in_order[0] if in_order else None)

    def teardown(self) -> None:
        expected = [waiting.ticket_id for waiting in self.queue.in_order()]
        assert pop_all(self.queue) == expected


TestLines = Lines.TestCase
TestLines.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
