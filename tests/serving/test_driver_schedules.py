"""One driver under a random schedule: gate, engine, reader, clock and operator act in any order that their ports allow.

Whatever the order: it settles once, leaves the gate once, aborts each prompt at most once, is counted once, and no byte
follows the end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.manual_gate import ManualGate
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.errors import EngineLost, EngineUnavailable, InternalError, NoCapacity, ServeError, ServerDraining
from tidegate.inference.event import ChoiceFinished, ContentText
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.deadline import TimeLimit, fix_deadlines
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.states import Reply, Work
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.driven_stream import DrivenStream
from tidegate.serving.driver import RequestDriver
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request
from tidegate.testing.virtual_loop import VirtualLoop
from tidegate.text.byte_tokenizer import ByteVocabulary

T = TypeVar("T")
UNSENT_BYTES = 6
rarely = st.sampled_from([False, False, False, False, True])
"""So that what ends a request does not end nearly all of them at their beginning."""
OUTCOMES = {"stop", "length", "error", "client_gone", "slow_client", "deadline", "shutdown"}


class LooseEngine:
    """An `Engine` that is obeyed late, as the port allows: outputs go on until the end of a choice is said."""

    def __init__(self) -> None:
        self.is_up = True
        self.sinks: dict[str, DeltaSink] = {}
        self.open: dict[str, set[int]] = {}
        self.aborts: list[tuple[str, int | None]] = []
        self.is_held: defaultdict[str, bool] = defaultdict(bool)

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        if not self.is_up:
            raise EngineUnavailable("down")
        self.sinks[request.request_id] = sink
        self.open[request.request_id] = set(range(request.num_choices))

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.aborts.append((request_id, choice))

    def hold(self, request_id: str, *, held: bool) -> None:
        self.is_held[request_id] = held

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)

    def open_choices(self) -> list[tuple[str, int]]:
        return sorted((request_id, choice) for request_id, choices in self.open.items() for choice in choices)

    def say(self, request_id: str, choice: int, text: str, finish: EngineFinish | None) -> None:
        if finish is not None:
            self.open[request_id].discard(choice)
        self.sinks[request_id].deliver(TokenDelta(request_id, choice, list(text.encode()), finish, num_prompt_tokens=2))

    def is_asked_to_end(self, request_id: str, choice: int) -> bool:
        return (request_id, None) in self.aborts or (request_id, choice) in self.aborts

    def lose(self) -> None:
        self.is_up = False
        lost = [request_id for request_id, choices in self.open.items() if choices]
        self.open.clear()
        for request_id in lost:
            self.sinks[request_id].fail(EngineLost("gone"))


class Ledger(NullObserver):
    def __init__(self) -> None:
        self.ends: list[str] = []

    def request_ended(self, facts: RequestEnded) -> None:
        self.ends.append(facts.outcome)

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.ends.append("refused")


class Writer:
    def open(self) -> bytes:
        return b"^"

    def render(self, index: int, event: object) -> bytes:
        if isinstance(event, ContentText):
            return event.text.encode()
        return b"|" if isinstance(event, ChoiceFinished) else b"?"

    def close(self) -> bytes:
        return b"."


class DriverSchedule(RuleBasedStateMachine):
    """The reader is a stream's. `bytes_read` is all that it got, `end` how its stream ended."""

    @initialize(
        num_prompts=st.integers(1, 2),
        num_choices=st.integers(1, 2),
        is_open=st.booleans(),
        whole_ms=st.none() | st.integers(1, 200),
        first_token_ms=st.none() | st.integers(1, 200),
    )
    def begin(
        self, num_prompts: int, num_choices: int, is_open: bool, whole_ms: int | None, first_token_ms: int | None
    ) -> None:
        self.clock = ManualClock(now=0.0)
        self.loop = VirtualLoop(self.clock)
        self.engine, self.ledger, self.gate = LooseEngine(), Ledger(), ManualGate(is_open=is_open)
        self.faults: list[BaseException] = []
        self.settled: list[RequestDriver] = []
        self.bytes_read, self.end = b"", None
        self.is_gone = self.is_broken = False
        prompts = [
            PreparedPrompt(
                make_request(f"r{i}", "hi", num_choices=num_choices), ChoicePlan(ByteVocabulary(), ("stop",)), [1, 2]
            )
            for i in range(num_prompts)
        ]
        deadlines = fix_deadlines(0.0, [TimeLimit(whole_ms, "request")], [TimeLimit(first_token_ms, "request")])
        context = CallContext("r0", "w", "/v1/x", 0.0, 0, deadlines=deadlines)
        call = PreparedCall(context, "m", "fp", prompts, num_choices, is_stream=True)
        around = Surroundings(
            self.engine, self.gate, Drain(), self.ledger, self.clock, UNSENT_BYTES, self.faults.append
        )

        def make() -> None:
            self.driver = RequestDriver(call, around, self.settled.append)
            self.driver.start()

        self.stream: DrivenStream | None = None
        self.act(make)

    end: str | None
    stream: DrivenStream | None

    def act(self, function: Callable[[], T]) -> T:
        """Runs something on the loop, and whatever it has made ready."""

        async def run() -> T:
            result = function()
            await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(run())

    # ---- the gate ----

    @precondition(lambda self: self.gate.waiting)
    @rule()
    def admit(self) -> None:
        self.act(lambda: self.gate.admit("r0"))

    @precondition(lambda self: self.gate.waiting)
    @rule(happens=rarely)
    def refuse(self, happens: bool) -> None:
        if happens:
            self.act(lambda: self.gate.refuse("r0", NoCapacity("waited too long")))

    # ---- the engine ----

    @precondition(lambda self: self.engine.open_choices())
    @rule(data=st.data(), text=st.sampled_from(["a", "bc", "st", "op", "stop", "longer text"]))
    def speak(self, data: Any, text: str) -> None:
        request_id, choice = data.draw(st.sampled_from(self.engine.open_choices()))
        finish = data.draw(st.sampled_from([None, None, None, EngineFinish.EOS, EngineFinish.LENGTH]))
        self.act(lambda: self.engine.say(request_id, choice, text, finish))

    @precondition(lambda self: self.engine.open_choices())
    @rule(finish=st.sampled_from([EngineFinish.EOS, EngineFinish.LENGTH]), num_choices=st.integers(1, 4))
    def finish_choices(self, finish: EngineFinish, num_choices: int) -> None:
        for request_id, choice in self.engine.open_choices()[:num_choices]:
            self.act(partial(self.engine.say, request_id, choice, "end", finish))

    @precondition(lambda self: any(self.engine.is_asked_to_end(*key) for key in self.engine.open_choices()))
    @rule()
    def acknowledge(self) -> None:
        key = next(key for key in self.engine.open_choices() if self.engine.is_asked_to_end(*key))
        self.act(lambda: self.engine.say(*key, "", EngineFinish.ABORTED))

    @precondition(lambda self: self.engine.open_choices())
    @rule(data=st.data())
    def give_up_a_choice(self, data: Any) -> None:
        if not data.draw(rarely):
            return
        request_id, choice = data.draw(st.sampled_from(self.engine.open_choices()))
        self.act(lambda: self.engine.say(request_id, choice, "", EngineFinish.FAILED))

    @rule(happens=rarely)
    def lose_the_engine(self, happens: bool) -> None:
        if happens:
            self.act(self.engine.lose)

    # ---- the reader, as HTTP is ----

    @precondition(lambda self: self.stream is None and self.end is None and not self.is_gone)
    @rule()
    def send_head(self) -> None:
        """The status is due: an output came, the request failed, or the hold is over."""
        error = self.driver.error
        if error is not None and self.driver.machine.reply is Reply.UNSENT:
            self.act(lambda: self.driver.note_sent(Event.SEND_ERROR, 500))
            self.end = "status"
        else:
            self.stream = self.act(lambda: DrivenStream(self.driver, Writer(), []))

    @precondition(lambda self: self.stream is not None and self.end is None and not self.is_gone)
    @rule()
    def read(self) -> None:
        stream = self.stream
        assert stream is not None

        async def take() -> bytes | None:
            self.driver.nudge()
            return await stream.take()

        try:
            data = self.loop.run_until_complete(take())
        except ServeError:
            self.end = "error"
            self.act(lambda: stream.close("done"))
            return
        if data is None:
            self.end = "done"
            self.act(lambda: stream.close("done"))
        else:
            self.bytes_read += data
        if data != b"^":
            assert not self.driver.mailbox.num_bytes
            assert not any(self.engine.is_held[request_id] for request_id, _ in self.engine.open_choices())

    @precondition(lambda self: not self.is_gone)
    @rule(cause=st.sampled_from(["client_gone", "slow_client"]), happens=rarely)
    def leave(self, cause: str, happens: bool) -> None:
        if not happens:
            return
        self.is_gone = True
        stream = self.stream
        self.act(lambda: self.driver.disconnect(cause) if stream is None else stream.close(cause))

    # ---- time and the operator ----

    @rule(duration_ms=st.integers(1, 10))
    def wait(self, duration_ms: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(duration_ms / 1000))

    @rule(happens=rarely)
    def end_the_drain(self, happens: bool) -> None:
        if happens:
            self.act(lambda: self.driver.expire(ServerDraining("bye"), cause="shutdown"))

    @precondition(lambda self: self.stream is None)
    @rule(happens=rarely, again=rarely)
    def break_down(self, happens: bool, again: bool) -> None:
        """A fault of ours, before there is a stream."""
        if not (happens and again):
            return
        self.act(lambda: self.driver.give_up(InternalError("broken")))
        self.end = self.end or "status"
        self.is_broken = True

    # ---- what always holds ----

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "driver"):
            return
        assert self.faults == []
        assert len(self.settled) == len(self.ledger.ends) <= 1
        assert self.gate.left["r0"] <= 1
        whole = [request_id for request_id, choice in self.engine.aborts if choice is None]
        assert len(whole) == len(set(whole))
        assert len(self.engine.aborts) == len(set(self.engine.aborts))
        assert not (self.settled and self.engine.open_choices()) or self.ledger.ends == ["refused"], "see `submit`"
        if self.driver.machine.work in (Work.STOPPED, Work.FINISHED) and not self.is_broken:
            assert self.driver.error is None, "a complete answer is not taken back"
        num_dots = self.bytes_read.count(b".")
        assert num_dots <= 1
        assert not num_dots or self.bytes_read.endswith(b".")
        if self.settled:
            assert self.gate.left["r0"] == 1
            assert (self.gate.waiting, self.gate.inside) == ({}, set())

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        try:
            self.play_to_the_end()
            self.check_end()
            self.check_timers()
        finally:
            self.loop.close()

    def play_to_the_end(self) -> None:
        """Gate and engine come to their ends, and the reader, if it is still there, to that of its stream."""
        if self.gate.waiting:
            self.act(lambda: self.gate.admit("r0"))
        for key in self.engine.open_choices():
            self.finish(*key)
        if not self.is_gone and self.stream is None and self.end is None:
            self.send_head()
        for _ in range(4):
            if not self.is_gone and self.stream is not None and self.end is None:
                self.read()

    def finish(self, request_id: str, choice: int) -> None:
        asked = self.engine.is_asked_to_end(request_id, choice)
        self.act(lambda: self.engine.say(request_id, choice, "", EngineFinish.ABORTED if asked else EngineFinish.EOS))

    def check_timers(self) -> None:
        """With a timer left the loop would jump to it."""
        now = self.clock.now()
        with pytest.raises(RuntimeError, match="nothing will ever happen"):
            self.loop.run_until_complete(self.loop.create_future())
        assert self.clock.now() == now

    def check_end(self) -> None:
        self.holds()
        assert self.driver.machine.is_settled
        assert self.is_gone or self.end is not None
        assert self.settled == [self.driver]
        assert self.ledger.ends[0] in OUTCOMES | {"refused"}
        assert self.is_gone or (self.end == "done") == self.bytes_read.endswith(b".")
        if self.end == "done":
            assert self.ledger.ends in (["stop"], ["length"])
            assert self.bytes_read.count(b"|") == len(self.driver.call.prompts) * self.driver.call.num_choices
        stream = self.stream
        if stream is not None:

            async def take_again() -> bytes | None:
                self.driver.nudge()
                return await stream.take()

            assert self.loop.run_until_complete(take_again()) in (None, b""), "nothing follows the end"


TestDriverSchedule = DriverSchedule.TestCase
TestDriverSchedule.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
