"""Which engine gets a request: the table of ties, and the bounds under skewed loads."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engines.pool.prefix_hash import affinity
from tidegate.engines.pool.routing import Candidate, Routing, RoutingRule, Work, rank

LEAST = RoutingRule()
PREFIX = RoutingRule(Routing.PREFIX_FIRST)


def one(name: str, num_tokens: int = 0, num_sequences: int = 0, num_rows: int = 8, matched: int = 0) -> Candidate:
    return Candidate(name, num_tokens, num_sequences, num_rows, matched)


def home(prefix: bytes, names: str) -> str:
    return max(names, key=lambda name: affinity(prefix, name))


HOME = home(b"q", "ab")
CASES: list[tuple[str, list[Candidate], Work, RoutingRule, str]] = [
    ("the one that owes less", [one("a", 900), one("b", 100)], Work(50, 50), LEAST, "b"),
    ("a free row before less work", [one("a", 10, 8), one("b", 900, 1)], Work(50, 50), LEAST, "b"),
    ("less work where no row is free", [one("a", 10, 8), one("b", 900, 8)], Work(50, 50), LEAST, "a"),
    ("twice the rows, twice the work", [one("a", 900, num_rows=16), one("b", 500)], Work(50, 50), LEAST, "a"),
    ("a cache that is worth more", [one("a", 100), one("b", 400, matched=512)], Work(1000, 9), LEAST, "b"),
    ("a cache that is worth less", [one("a", 100), one("b", 700, matched=512)], Work(1000, 9), LEAST, "a"),
    ("the longer cache between equals", [one("a"), one("b", 64, matched=64)], Work(100, 9, b"p"), LEAST, "b"),
    ("the home between equals", [one("a"), one("b")], Work(100, 9, b"p"), LEAST, home(b"p", "ab")),
    ("turns without a home", [Candidate("a", 0, 0, 8, 0, 5), Candidate("b", 0, 0, 8, 0, 4)], Work(9, 9), LEAST, "b"),
    ("the cache first", [one("a"), one("b", 700, matched=64)], Work(700, 0, b"p"), PREFIX, "b"),
    ("up to its bound", [one("a", 1000), one("b", 1200, matched=64)], Work(64, 0, b"p"), PREFIX, "b"),
    ("not beyond its bound", [one("a"), one("b", 3000, matched=64)], Work(700, 0, b"p"), PREFIX, "a"),
    ("not without a row", [one("a"), one("b", 700, 8, matched=64)], Work(700, 0, b"p"), PREFIX, "a"),
    ("the home where nobody has it", [one("a", 90), one("b", 90)], Work(64, 9, b"q"), PREFIX, home(b"q", "ab")),
    ("the home though it owes more", [one(n, 99 if n == HOME else 90) for n in "ab"], Work(64, 9, b"q"), PREFIX, HOME),
    ("by load without a beginning", [one("a", 90), one("b", 9)], Work(6, 9), PREFIX, "b"),
]


@pytest.mark.parametrize(
    ("candidates", "work", "rule", "best"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_best_engine(candidates: list[Candidate], work: Work, rule: RoutingRule, best: str) -> None:
    ranked = rank(candidates, work, rule)
    assert ranked[0].name == best
    assert rank(list(reversed(candidates)), work, rule) == ranked, "the order in which engines stand decides nothing"
    assert sorted(each.name for each in ranked) == sorted(each.name for each in candidates)


def test_nobody_to_choose_from_and_a_senseless_factor() -> None:
    assert rank([], Work(1, 1), LEAST) == []
    assert rank([one("a", 5, 8)], Work(1, 1), PREFIX) == [one("a", 5, 8)]
    with pytest.raises(ValueError, match="below 1"):
        RoutingRule(load_factor=0.9)


def test_homes_are_spread_and_only_those_of_an_engine_that_leaves_move() -> None:
    prefixes = [str(i).encode() for i in range(2000)]
    before = {prefix: home(prefix, "abcd") for prefix in prefixes}
    counts = Counter(before.values())
    assert min(counts.values()) > 400
    for prefix in prefixes:
        assert home(prefix, "abc") == before[prefix] or before[prefix] == "d"


class Fleet:
    """Engines that all work at one speed: what they owe falls by the same amount for each that has work."""

    def __init__(self, num_engines: int, rule: RoutingRule) -> None:
        self.owed = {f"e{i}": 0 for i in range(num_engines)}
        self.known: dict[str, set[bytes]] = {name: set() for name in self.owed}
        self.rule = rule

    def place(self, num_prompt: int, num_output: int, prefix: bytes | None) -> str:
        candidates = [
            one(name, tokens, num_rows=10**9, matched=num_prompt // 2 if prefix in self.known[name] else 0)
            for name, tokens in self.owed.items()
        ]
        name = rank(candidates, Work(num_prompt, num_output, prefix), self.rule)[0].name
        matched = next(each.num_matched_tokens for each in candidates if each.name == name)
        self.owed[name] += max(1, num_prompt - matched) + num_output
        if prefix is not None:
            self.known[name].add(prefix)
        return name

    def work(self, num_tokens: int) -> None:
        self.owed = {name: max(0, tokens - num_tokens) for name, tokens in self.owed.items()}


SIZES = st.tuples(
    st.sampled_from([1, 5, 50, 800, 4000]),
    st.sampled_from([1, 16, 256, 2000]),
    st.sampled_from([None, b"hot", b"warm", b"cold"]),
    st.integers(0, 1500),
)


@given(num_engines=st.integers(2, 5), load=st.lists(SIZES, max_size=60))
def test_no_engine_owes_more_than_the_largest_request_above_another(
    num_engines: int, load: list[tuple[int, int, bytes | None, int]]
) -> None:
    fleet, largest = Fleet(num_engines, LEAST), 0
    for num_prompt, num_output, prefix, pause in load:
        fleet.place(num_prompt, num_output, prefix)
        largest = max(largest, num_prompt + num_output)
        assert max(fleet.owed.values()) - min(fleet.owed.values()) <= largest
        fleet.work(pause)


@given(num_engines=st.integers(2, 5), load=st.lists(SIZES, max_size=60))
def test_a_hot_beginning_overloads_no_engine(num_engines: int, load: list[tuple[int, int, bytes | None, int]]) -> None:
    fleet, largest = Fleet(num_engines, PREFIX), 0
    for num_prompt, num_output, prefix, pause in load:
        mean = sum(fleet.owed.values()) / num_engines
        largest = max(largest, num_prompt + num_output)
        name = fleet.place(num_prompt, num_output, prefix)
        assert fleet.owed[name] <= PREFIX.load_factor * mean + 2 * largest
        fleet.work(pause)


@pytest.mark.parametrize("rule", [LEAST, PREFIX], ids=["least", "prefix"])
@pytest.mark.parametrize("num_engines", [2, 3, 6])
def test_no_engine_starves_while_others_have_a_queue(num_engines: int, rule: RoutingRule) -> None:
    """One hot beginning only, and nothing ends. By prefix first, as few are used as the bound allows."""
    fleet, num_each = Fleet(num_engines, rule), 20
    counts = Counter(fleet.place(1000, 100, b"hot") for _ in range(num_engines * num_each))
    assert max(counts.values()) <= PREFIX.load_factor * num_each + 2
    if rule is LEAST:
        assert min(counts[name] for name in fleet.owed) >= num_each - 2
    else:
        assert len(counts) >= int(num_engines / PREFIX.load_factor)
