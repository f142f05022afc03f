"""GenerationFence against a plain model: what is open, under which epoch, and how many outputs were stale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InternalError
from tidegate.lifecycle.fence import GenerationFence


def fence_at(epoch: int) -> GenerationFence:
    fence = GenerationFence()
    fence.advance(epoch)
    return fence


def test_outputs_of_an_open_request_pass_until_it_is_closed() -> None:
    fence = fence_at(1)
    fence.open("a", 1)
    assert fence.admits("a", 1)
    assert fence.close("a")
    assert not fence.close("a")
    assert not fence.admits("a", 1)
    assert fence.num_stale == 1


def test_outputs_of_another_epoch_are_stale_and_counted() -> None:
    fence = fence_at(2)
    fence.open("a", 2)
    assert [fence.admits("a", epoch) for epoch in (1, 3)] == [False, False]
    assert fence.admits("a", 2)
    assert fence.num_stale == 2


def test_a_new_epoch_loses_everything_open_in_order_of_opening() -> None:
    fence = fence_at(1)
    for name in "bac":
        fence.open(name, 1)
    fence.close("a")
    assert fence.advance(2) == ["b", "c"]
    assert not fence.admits("b", 1)
    fence.open("b", 2)
    assert not fence.admits("b", 1)
    assert fence.admits("b", 2)


def test_a_second_connection_under_one_epoch_loses_what_the_first_asked_for() -> None:
    fence = fence_at(1)
    fence.open("a", 1)
    assert fence.advance(1) == ["a"]


def test_nothing_opens_while_no_engine_is_connected() -> None:
    fence = GenerationFence()
    with pytest.raises(InternalError, match="epoch"):
        fence.open("a", 1)
    fence.advance(1)
    assert fence.advance(None) == []
    with pytest.raises(InternalError, match="epoch"):
        fence.open("a", 1)


def test_an_epoch_never_goes_back_even_over_a_loss() -> None:
    fence = fence_at(3)
    fence.advance(None)
    with pytest.raises(InternalError, match="went back"):
        fence.advance(2)
    assert fence.epoch is None


def test_an_id_opens_once() -> None:
    fence = fence_at(1)
    fence.open("a", 1)
    with pytest.raises(InternalError, match="twice"):
        fence.open("a", 1)


ACTS = st.tuples(
    st.sampled_from(["open", "close", "output", "advance", "lose"]), st.sampled_from("abc"), st.integers(0, 2)
)


@given(st.lists(ACTS, max_size=60))
def test_it_agrees_with_a_plain_model(acts: list[tuple[str, str, int]]) -> None:
    fence = fence_at(0)
    open_ids: dict[str, int] = {}
    epoch, connected, num_stale = 0, True, 0
    for act, name, age in acts:
        if act == "open" and connected and name not in open_ids:
            fence.open(name, epoch)
            open_ids[name] = epoch
        elif act == "close":
            assert fence.close(name) == (open_ids.pop(name, None) is not None)
        elif act == "output":
            is_fresh = open_ids.get(name) == epoch - age
            num_stale += not is_fresh
            assert fence.admits(name, epoch - age) == is_fresh
        elif act in {"advance", "lose"}:
            connected = act == "advance"
            epoch += connected
            assert fence.advance(epoch if connected else None) == list(open_ids)
            open_ids.clear()
        assert (fence.statistics().num_open, fence.num_stale) == (len(open_ids), num_stale)
