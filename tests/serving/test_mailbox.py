"""The mailbox merges what waits, loses nothing, and wakes exactly one reader."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inference.event import ChoiceFinished, ContentText, StreamEvent
from tidegate.inference.finish import FinishReason
from tidegate.serving.mailbox import Mailbox


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def text_of(items: list[tuple[int, StreamEvent]], index: int) -> str:
    return "".join(event.text for at, event in items if at == index and isinstance(event, ContentText))


def test_what_waits_is_taken_at_once_and_merged_for_each_choice() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        for index, text in [(0, "a"), (1, "x"), (0, "b"), (1, "y")]:
            mailbox.put(index, [ContentText(text)])
        assert await mailbox.take() == [(0, ContentText("ab")), (1, ContentText("xy"))]

    run(main())


def test_a_waiting_reader_gets_the_next_event() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        taking = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        mailbox.put(0, [ContentText("a")])
        assert await taking == [(0, ContentText("a"))]

    run(main())


def test_a_cancelled_take_loses_nothing() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        taking = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        mailbox.put(0, [ContentText("a")])
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert await mailbox.take() == [(0, ContentText("a"))]

    run(main())


def test_after_close_what_waits_can_be_taken_and_then_comes_none_for_ever() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        mailbox.put(0, [ContentText("a")])
        mailbox.close()
        mailbox.put(0, [ContentText("too late")])
        assert not mailbox.is_drained
        assert await mailbox.take() == [(0, ContentText("a"))]
        assert mailbox.is_drained
        assert await mailbox.take() is None
        assert await mailbox.take() is None

    run(main())


def test_a_nudge_wakes_an_idle_reader_with_nothing_and_is_forgotten_when_something_came() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        taking = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        mailbox.nudge()
        assert await taking == []
        mailbox.nudge()
        mailbox.put(0, [ContentText("a")])
        assert await mailbox.take() == [(0, ContentText("a"))]
        taking = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        assert not taking.done()
        mailbox.close()
        assert await taking is None

    run(main())


@given(st.lists(st.tuples(st.integers(0, 3), st.text(min_size=1, max_size=3)), min_size=1, max_size=400))
def test_however_far_behind_the_reader_is_the_text_is_whole_and_the_pieces_are_few(
    puts: list[tuple[int, str]],
) -> None:
    async def main() -> None:
        mailbox = Mailbox()
        for index, text in puts:
            mailbox.put(index, [ContentText(text)])
        assert mailbox.num_bytes == sum(len(text) for _, text in puts)
        items = await mailbox.take() or []
        for index in range(4):
            assert text_of(items, index) == "".join(text for at, text in puts if at == index)
        assert len(items) <= 4
        assert mailbox.num_bytes == 0

    run(main())


def test_a_reader_that_never_comes_costs_a_bounded_number_of_pieces() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        for number in range(10_000):
            mailbox.put(number % 4, [ContentText("ab")])
            assert len(mailbox._items) <= 64
        assert mailbox.num_bytes == 20_000
        assert await mailbox.take() == [(index, ContentText("ab" * 2_500)) for index in range(4)]

    run(main())


def test_the_finish_stays_behind_the_text_of_its_choice() -> None:
    async def main() -> None:
        mailbox = Mailbox()
        finished = ChoiceFinished(FinishReason.STOP)
        for _ in range(100):
            mailbox.put(0, [ContentText("a")])
        mailbox.put(0, [ContentText("b"), finished])
        mailbox.put(1, [ContentText("c")])
        assert await mailbox.take() == [(0, ContentText("a" * 100 + "b")), (0, finished), (1, ContentText("c"))]

    run(main())
