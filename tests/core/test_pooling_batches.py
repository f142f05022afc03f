"""Which prompts are pooled next, and when: order, size, turns; and the laws of both under random schedules."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.core.pooling_batches import BatchLimits, PooledInput, PoolingBatches, Streams
from tidegate.errors import InternalError
from tidegate.inference.pooling import PoolingTask
from tidegate.testing.requests import make_request

LIMITS = BatchLimits(max_tokens=32, max_inputs=4, share_tokens=8)
EMBED, CLASSIFY = PoolingTask.EMBED, PoolingTask.CLASSIFY


def prompt(
    key: int, length: int = 4, *, priority: int = 0, not_before: float = 0.0, task: PoolingTask = EMBED
) -> PooledInput:
    request = make_request(f"r{key}", [1] * length, priority=priority, pooling=task)
    return PooledInput(key, request, task, 0.0, not_before, float(priority))


def batches(*items: PooledInput) -> PoolingBatches:
    queue = PoolingBatches(LIMITS)
    for item in items:
        queue.enter(item)
    return queue


def keys(taken: Iterable[PooledInput]) -> list[int]:
    return [item.key for item in taken]


ORDERS = [
    ([prompt(0, priority=5), prompt(1), prompt(2, priority=-5)], [2, 1, 0]),
    ([prompt(0, not_before=9.0), prompt(1)], [1]),
    ([prompt(0, 20), prompt(1, 20), prompt(2, 1)], [0]),
    ([prompt(0, 20), prompt(1, 12), prompt(2, 1)], [0, 1]),
    ([prompt(0, 99), prompt(1, 1)], [0]),
    ([prompt(key, 1) for key in range(6)], [0, 1, 2, 3]),
    ([prompt(0), prompt(1, task=CLASSIFY), prompt(2)], [0]),
]


@pytest.mark.parametrize(("items", "expected"), ORDERS, ids=range(len(ORDERS)))
def test_a_batch_alone_is_the_first_that_fit_and_nothing_passes(items: list[PooledInput], expected: list[int]) -> None:
    queue = batches(*items)
    assert keys(queue.take(1.0, Streams.ABSENT)) == expected
    assert len(queue.inputs) == len(items) - len(expected)
    queue.check_integrity()


@pytest.mark.parametrize("streams", [Streams.IDLE, Streams.DUE])
def test_beside_streams_a_batch_is_one_share_or_one_prompt(streams: Streams) -> None:
    queue = batches(prompt(0, 4), prompt(1, 4), prompt(2, 1))
    assert keys(queue.take(0.0, streams)) == [0, 1]
    assert keys(batches(prompt(0, 30), prompt(1, 1)).take(0.0, streams)) == [0]


def test_due_streams_step_between_two_batches_and_longer_after_a_long_prompt() -> None:
    queue = batches(prompt(0, 8), prompt(1, 20), prompt(2, 1))
    taken = []
    for _ in range(8):
        taken.append(keys(queue.take(0.0, Streams.DUE)))
        if not taken[-1]:
            queue.earn()
    # 8 tokens cost one step of 8, and 20 cost three.
    assert taken == [[0], [], [1], [], [], [], [2], []]


@pytest.mark.parametrize("streams", [Streams.IDLE, Streams.ABSENT])
def test_nothing_is_owed_to_streams_that_do_not_wait(streams: Streams) -> None:
    queue = batches(prompt(0, 30), prompt(1, 30), prompt(2))
    assert keys(queue.take(0.0, Streams.DUE)) == [0]
    assert keys(queue.take(0.0, streams)) == [1]
    assert keys(queue.take(0.0, Streams.DUE)) == [2], "what was taken without them costs them nothing either"


def test_earnings_are_not_saved_up() -> None:
    queue = batches(prompt(0, 16), prompt(1, 1))
    for _ in range(100):
        queue.earn()
    assert keys(queue.take(0.0, Streams.DUE)) == [0]
    assert keys(queue.take(0.0, Streams.DUE)) == []


def test_integrity_finds_a_prompt_in_two_places() -> None:
    queue = batches(prompt(0))
    queue.parked[0] = queue.inputs["r0"]
    with pytest.raises(InternalError, match="2 places"):
        queue.check_integrity()
    queue = batches(prompt(0))
    queue.waiting.add(prompt(7))
    with pytest.raises(InternalError, match="still listed"):
        queue.check_integrity()


Act = tuple[str, int, int]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "hold", "resume", "leave", "turn", "turn"]),
        st.integers(0, 40),
        st.integers(-2, 2),
    )
)


@settings(deadline=None)
@given(ACTS)
def test_every_prompt_leaves_exactly_once_and_shares_are_kept(acts: list[Act]) -> None:
    queue, gone, num_added = PoolingBatches(LIMITS), set[int](), 0
    num_pooled_tokens = num_steps = 0
    for act, number, priority in acts:
        items = list(queue.inputs.values())
        item = items[number % len(items)] if items else None
        if act == "add":
            queue.enter(prompt(num_added, number + 1, priority=priority))
            num_added += 1
        elif act == "turn":
            taken = queue.take(0.0, Streams.DUE)
            num_steps += not taken
            num_pooled_tokens += sum(each.request.num_prompt_tokens for each in taken)
            assert not gone & set(keys(taken))
            gone |= set(keys(taken))
            if not taken:
                queue.earn()
            # Never more than a share a step, but for the last prompt or share.
            assert num_pooled_tokens <= (num_steps + 1) * LIMITS.share_tokens + 41
        elif item is not None and act == "leave":
            queue.leave(item)
            gone.add(item.key)
        elif item is not None:
            queue.hold(item, held=act == "hold")
        queue.check_integrity()
    for item in list(queue.inputs.values()):
        queue.hold(item, held=False)
    while batch := queue.take(0.0, Streams.ABSENT):
        gone |= set(keys(batch))
    assert (gone, queue.inputs) == (set(range(num_added)), {})
