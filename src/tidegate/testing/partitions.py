"""Ways to cut an input into pieces: what every incremental machine is tested with.

A machine is right when all cuts give the same result. The cuts are all cuts into two, one item at a time, and random
ones, among them pieces of nothing.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S", str, bytes, list[int], list[str], list[bytes])


def two_cuts(whole: S) -> Iterator[list[S]]:
    """Yields every cut into two pieces, the empty ones included."""
    for at in range(len(whole) + 1):
        yield [whole[:at], whole[at:]]


def single_items(whole: S) -> list[S]:
    """Returns `whole` cut into pieces of one item."""
    return [whole[at : at + 1] for at in range(len(whole))]


def cut_at(whole: S, places: Sequence[int]) -> list[S]:
    """Returns `whole` cut at these offsets, in any order; an offset given twice makes an empty piece."""
    cuts = [0, *sorted(places), len(whole)]
    return [whole[start:end] for start, end in pairwise(cuts)]


def random_partitions(whole: S, *, count: int = 20, seed: int = 0) -> Iterator[list[S]]:
    """Yields `count` random cuts, the same ones for the same seed."""
    source = random.Random(seed)
    for _ in range(count):
        num_cuts = source.randint(0, max(len(whole), 1))
        yield cut_at(whole, [source.randint(0, len(whole)) for _ in range(num_cuts)])


def partitions(whole: S, *, num_random: int = 20, seed: int = 0) -> Iterator[list[S]]:
    """Yields the whole, one item at a time, every cut into two, and random cuts. Quadratic: keep inputs short."""
    yield [whole]
    yield single_items(whole)
    yield from two_cuts(whole)
    yield from random_partitions(whole, count=num_random, seed=seed)
