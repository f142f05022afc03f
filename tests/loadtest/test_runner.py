"""Loops over sessions, in virtual time: who is asked when, how many at once, and where it ends."""

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import count
from typing import Any

from tidegate.loadtest.orders import Budget, Load
from tidegate.loadtest.runner import LoadRunner
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.session import Message, Session, Turn
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.virtual_loop import VirtualLoop

FAR = 1e9


class SlowServer:
    """Answers after so long; as JSON when told to. Remembers what was asked and how many at once."""

    def __init__(self, clock: ManualClock, takes_s: float, *, ending: str = "done", answer: str = "ok") -> None:
        self.clock = clock
        self.asked: list[list[Message]] = []
        self.most = self._now = 0
        self._takes_s, self._ending, self._answer = takes_s, ending, answer

    async def ask(self, turn: Turn, messages: list[Message], sample: Sample) -> str:
        self.asked.append(messages)
        sample.sent_at = self.clock.now()
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(self._takes_s)
        self._now -= 1
        sample.ended_at = self.clock.now()
        sample.token_at = [sample.ended_at]
        sample.ending, sample.num_tokens, sample.finish_reason = self._ending, turn.max_tokens, "stop"
        return self._answer


class Scene:
    """A runner before a slow server."""

    def __init__(self, takes_s: float, *, tokens: int = 10**9, **manner: str) -> None:
        self.clock = ManualClock(now=0.0)
        self.server = SlowServer(self.clock, takes_s, **manner)
        self.told: list[Sample] = []
        self.budget = Budget(tokens)
        self.runner = LoadRunner(self.server, self.clock, self.budget, self.told.append)

    def play(self, work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.clock)) as runner:
            runner.run(work)


def sessions(number: int, num_turns: int = 1, **changes: Any) -> list[Session]:
    turn = Turn(max_tokens=5, messages=({"role": "user", "content": "q"},), num_prompt_tokens=5, **changes)
    return [Session(index=index, group="all", turns=(turn,) * num_turns) for index in range(number)]


def every(step_s: float) -> Iterator[float]:
    return (step_s * number for number in count())


def test_clients_of_a_closed_loop_ask_again_when_they_are_answered() -> None:
    scene = Scene(2.0)
    scene.play(scene.runner.run_closed(sessions(7), Load(num_clients=3), FAR))
    assert scene.server.most == 3
    assert scene.clock.now() == 6.0
    assert [sample.sent_at for sample in scene.runner.samples] == [0, 0, 0, 2, 2, 2, 4]
    assert scene.told == scene.runner.samples


def test_an_open_loop_asks_on_time_whatever_became_of_earlier_ones() -> None:
    scene = Scene(10.0)
    scene.play(scene.runner.run_open(sessions(5), Load(rate=1.0), every(1.0), FAR))
    assert [sample.due_at for sample in scene.runner.samples] == [0, 1, 2, 3, 4]
    assert [sample.sent_at for sample in scene.runner.samples] == [0, 1, 2, 3, 4]
    assert scene.server.most == 5
    assert scene.clock.now() == 14.0


def test_what_an_open_loop_may_not_send_is_counted_and_not_sent() -> None:
    scene = Scene(2.5)
    scene.play(scene.runner.run_open(sessions(6), Load(rate=1.0, max_in_flight=2), every(1.0), FAR))
    assert [sample.ending for sample in scene.runner.samples] == [
        "done",
        "done",
        "not_sent",
        "done",
        "done",
        "not_sent",
    ]
    assert len(scene.server.asked) == 4
    assert len(scene.told) == 6


def test_after_its_time_a_run_starts_nothing_and_ends_what_runs() -> None:
    scene = Scene(2.0)
    scene.play(scene.runner.run_closed(sessions(9), Load(num_clients=1), 3.0))
    assert [sample.ending for sample in scene.runner.samples] == ["done", "done"]
    scene = Scene(2.0)
    scene.play(scene.runner.run_open(sessions(9), Load(rate=1.0), every(1.0), 3.0))
    assert [sample.due_at for sample in scene.runner.samples] == [0, 1, 2, 3]


def test_a_spent_budget_ends_a_run() -> None:
    scene = Scene(1.0, tokens=25)
    scene.play(scene.runner.run_closed(sessions(9), Load(num_clients=1), FAR))
    assert len(scene.runner.samples) == 3
    assert scene.budget.is_spent


def test_an_agent_gives_back_the_answers_and_its_turns_are_due_when_answered() -> None:
    scene = Scene(2.0)
    scene.play(scene.runner.run_closed(sessions(1, num_turns=3), Load(), FAR))
    assert [[message["role"][0] for message in asked] for asked in scene.server.asked] == [
        ["u"],
        list("uau"),
        list("uauau"),
    ]
    assert [sample.due_at for sample in scene.runner.samples] == [0, 2, 4]


def test_a_failed_turn_ends_its_session_and_no_other() -> None:
    scene = Scene(1.0, ending="http_500")
    scene.play(scene.runner.run_closed(sessions(2, num_turns=3), Load(), FAR))
    assert [sample.ending for sample in scene.runner.samples] == ["http_500", "http_500"]


def test_an_answer_that_breaks_its_schema_is_an_error() -> None:
    schema = {"type": "object", "required": ["a"]}
    for answer, ending in (('{"a": 1}', "done"), ('{"b": 1}', "broke_schema"), ("prose", "broke_schema")):
        scene = Scene(1.0, answer=answer)
        scene.play(scene.runner.run_closed(sessions(1, schema=schema), Load(), FAR))
        assert scene.runner.samples[0].ending == ending


def test_a_stopped_run_leaves_what_it_had() -> None:
    scene = Scene(2.0)

    async def stop() -> None:
        running = asyncio.create_task(scene.runner.run_closed(sessions(9), Load(num_clients=2), FAR))
        await asyncio.sleep(3.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    scene.play(stop())
    assert [sample.ending for sample in scene.runner.samples] == ["done", "done", "unfinished", "unfinished"]
