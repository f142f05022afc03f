"""The cuts that incremental machines are tested with."""

import pytest

from tidegate.testing.partitions import cut_at, partitions, random_partitions, single_items, two_cuts


@pytest.mark.parametrize("whole", ["", "a", "abc", b"", b"abc", [1, 2, 3]])
def test_every_partition_joins_to_the_whole(whole: str) -> None:
    empty = whole[:0]
    for pieces in partitions(whole):
        joined = empty
        for piece in pieces:
            joined = joined + piece
        assert joined == whole


def test_all_cuts_into_two_are_there() -> None:
    assert list(two_cuts("ab")) == [["", "ab"], ["a", "b"], ["ab", ""]]


def test_single_items_and_given_places() -> None:
    assert single_items(b"ab") == [b"a", b"b"]
    assert cut_at("abc", [2, 0, 2]) == ["", "ab", "", "c"]


def test_random_partitions_repeat_with_their_seed() -> None:
    first, again = (list(random_partitions("abcdef", seed=3)) for _ in range(2))
    assert first == again
    assert first != list(random_partitions("abcdef", seed=4))
    assert len(first) == 20
