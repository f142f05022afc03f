"""Puts one run's load on one server: a closed or an open loop over sessions. A shell."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tidegate.clock import Clock
from tidegate.loadtest.orders import Budget, Load
from tidegate.loadtest.sample import Ending, Sample
from tidegate.loadtest.schema_check import check_schema
from tidegate.loadtest.session import Message, Session, Turn, next_messages

Tell = Callable[[Sample], None]


class Asks(Protocol):
    """Asks a server one thing, and fills in the sample as the answer comes (`ask.py`)."""

    async def ask(self, turn: Turn, messages: list[Message], sample: Sample) -> str:
        """Returns the answer's text; whatever went wrong stands in the sample."""
        ...


class LoadRunner:
    """One run. `samples` fills as requests are sent; those that run when it is stopped stay unfinished."""

    def __init__(self, asker: Asks, clock: Clock, budget: Budget, tell: Tell) -> None:
        self.samples: list[Sample] = []
        self._asker = asker
        self._clock = clock
        self._budget = budget
        self._tell = tell
        self._num_running = 0

    async def run_closed(self, sessions: Sequence[Session], load: Load, start_until: float) -> None:
        """Clients take sessions in turn, until there are none, the budget is spent, or `start_until` is past."""
        waiting = iter(sessions)

        async def work() -> None:
            for session in waiting:
                if self._is_over(start_until):
                    return
                await self._talk(session, self._clock.now())

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(load.num_clients, len(sessions))):
                tasks.create_task(work())

    async def run_open(
        self, sessions: Sequence[Session], load: Load, arrivals: Iterator[float], start_until: float
    ) -> None:
        """Sessions begin at their instants, whatever became of earlier ones."""
        origin = self._clock.now()
        async with asyncio.TaskGroup() as tasks:
            for session, at in zip(sessions, arrivals, strict=False):
                due = origin + at
                if due > start_until or self._is_over(start_until):
                    return
                await asyncio.sleep(max(0.0, due - self._clock.now()))
                if self._num_running >= load.max_in_flight:
                    self._skip(session, due)
                else:
                    tasks.create_task(self._talk(session, due))

    def _is_over(self, start_until: float) -> bool:
        return self._budget.is_spent or self._clock.now() > start_until

    def _skip(self, session: Session, due: float) -> None:
        sample = Sample(group=session.group, due_at=due, sent_at=due, ended_at=due, ending=Ending.NOT_SENT.value)
        self.samples.append(sample)
        self._tell(sample)

    async def _talk(self, session: Session, due: float) -> None:
        """Asks all turns; one that fails ends the session."""
        history: list[Message] = []
        answer: str | None = None
        for turn in session.turns:
            history = next_messages(history, turn, answer)
            sample = Sample(group=session.group, due_at=due, sent_at=due)
            self.samples.append(sample)
            self._num_running += 1
            try:
                answer = await self._asker.ask(turn, history, sample)
            finally:
                self._num_running -= 1
            if sample.is_done and turn.schema is not None and sample.finish_reason == "stop":
                fault = check_schema(turn.schema, answer)
                if fault is not None:
                    sample.ending, sample.detail = Ending.BROKE_SCHEMA.value, fault
            self._budget.charge(sample, turn.num_prompt_tokens)
            self._tell(sample)
            if not sample.is_done or self._budget.is_spent:
                return
            due = self._clock.now()
