"""One choice on its way out of vLLM: what its owner is told, over outputs written by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.engines.remote.carrier import Ending, Outcome, Run
from tidegate.engines.remote.dialect import Piece
from tidegate.engines.vllm.llm_carrier import LlmRun
from tidegate.engines.vllm.output_reading import VllmOutputReader
from tidegate.errors import EngineLost
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules


class Owner:
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[Piece | Outcome] = []
        self.has_ended = asyncio.Event()

    def take_piece(self, run: Run, piece: Piece) -> None:
        self.told.append(piece)

    def end_run(self, run: Run, outcome: Outcome) -> None:
        self.told.append(outcome)
        self.has_ended.set()

    @property
    def tokens(self) -> list[list[int]]:
        return [one.token_ids for one in self.told if isinstance(one, Piece)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [one for one in self.told if isinstance(one, Outcome)]


class Output:
    """What vLLM gives, one output for each `give`; `end` closes it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self.num_taken = 0

    def give(self, token_ids: list[int], finish: str | None = None, index: int = 0) -> None:
        one = SimpleNamespace(index=index, token_ids=token_ids, logprobs=None, finish_reason=finish)
        self._queue.put_nowait(SimpleNamespace(outputs=[one], num_cached_tokens=0, metrics=None, prompt_logprobs=None))

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def read(self) -> AsyncIterator[Any]:
        while (one := await self._queue.get()) is not None:
            self.num_taken += 1
            yield one


def play(act: Callable[[LlmRun, Owner, Output], Any]) -> Owner:
    async def run() -> Owner:
        owner, output, tasks = Owner(), Output(), set[asyncio.Task[None]]()
        request = InferenceRequest("r", b"\5\0\0\0", SamplingParams(), StopRules(max_tokens=8))
        one = LlmRun(owner, output.read, VllmOutputReader(request, 0, (257,)), 0, tasks)
        await act(one, owner, output)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not tasks
        return owner

    return asyncio.run(run())


async def turns() -> None:
    """Lets everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_owner_is_told_each_piece_and_the_end_last() -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([1])
        output.give([2, 3], "length")
        output.end()
        run.start()
        await owner.has_ended.wait()

    owner = play(act)
    assert owner.tokens == [[1], [2, 3]]
    assert [one.ending for one in owner.outcomes] == [Ending.COMPLETE]


def test_what_comes_behind_the_end_is_dropped() -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([1], "length")
        output.give([2])
        output.end()
        run.start()
        await owner.has_ended.wait()

    assert play(act).tokens == [[1]]


BROKEN: dict[str, Callable[[Output], None]] = {
    "an end that is none": lambda output: output.end(),
    "another choice": lambda output: output.give([2], index=1),
}


@pytest.mark.parametrize("break_off", BROKEN.values(), ids=BROKEN)
def test_an_output_that_breaks_off_or_cannot_be_read_is_lost(break_off: Callable[[Output], None]) -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([1])
        break_off(output)
        run.start()
        await owner.has_ended.wait()

    owner = play(act)
    assert owner.tokens == [[1]]
    [outcome] = owner.outcomes
    assert (outcome.ending, type(outcome.error)) == (Ending.LOST, EngineLost)


def test_a_held_run_opens_nothing_and_hands_on_nothing() -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        run.hold(held=True)
        output.give([1])
        output.give([2])
        run.start()
        await turns()
        assert (output.num_taken, owner.told) == (0, [])
        run.hold(held=False)
        await turns()
        assert owner.tokens == [[1], [2]]
        run.hold(held=True)
        output.give([3], "length")
        await turns()
        assert owner.tokens == [[1], [2]]
        run.hold(held=False)
        output.end()
        await owner.has_ended.wait()

    assert play(act).tokens == [[1], [2], [3]]


def test_a_run_that_was_cut_says_nothing_more() -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([1])
        run.start()
        await turns()
        run.cut()
        run.cut()
        output.give([2], "length")
        output.end()
        await turns()

    owner = play(act)
    assert owner.tokens == [[1]]
    assert owner.outcomes == []


def test_a_run_that_its_owner_cuts_at_a_piece_says_nothing_more() -> None:
    class Cutter(Owner):
        def take_piece(self, run: Run, piece: Piece) -> None:
            super().take_piece(run, piece)
            run.cut()

    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([1])
        output.give([2], "length")
        output.end()
        run._owner = cutter = Cutter()
        run.start()
        await turns()
        assert (cutter.tokens, cutter.outcomes) == ([[1]], [])

    play(act)


def test_the_end_of_an_output_is_read_as_its_finish() -> None:
    async def act(run: LlmRun, owner: Owner, output: Output) -> None:
        output.give([257], "stop")
        output.end()
        run.start()
        await owner.has_ended.wait()

    [piece] = [one for one in play(act).told if isinstance(one, Piece)]
    assert piece.finish is EngineFinish.EOS
