"""One server half and one engine half in memory, whose frames can be late, doubled, or from an engine that is gone.

Everything real between a request and its bytes takes part: driver, machine, mailbox, writer's stream, LocalEngine with
its fence, channel, frames, switchboard, core. The scene keeps its own account of which outputs are late.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.backends.scripted import ScriptedBackend, ScriptPlayer
from tidegate.core.step import EngineCore
from tidegate.engine.framing import FrameDecoder, decode_report, encode_frame
from tidegate.engine.messages import StepOutputs
from tidegate.engine_process.switchboard import Core
from tidegate.errors import ServeError
from tidegate.inference.event import ChoiceFinished, ContentText
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.script import Script, ScriptChoice
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.states import Work
from tidegate.lifecycle.ticket import Ticket
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.driven_stream import DrivenStream
from tidegate.serving.driver import RequestDriver
from tidegate.serving.gate import Entrant, KeySlot
from tidegate.serving.local_gate import FreeSlot
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.engine_pair import EnginePair
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request
from tidegate.text.byte_tokenizer import ByteVocabulary

Late = tuple[int, TokenDelta]
"""An output with the epoch under which it was made."""
WORK_OVER = (Work.FINISHED, Work.FAILED, Work.ABORTED)


def scripted_core() -> tuple[EngineCore, ModelInfo]:
    backend = ScriptedBackend(max_sequences=8, num_blocks=64, max_model_len=256, max_step_tokens=64)
    core = EngineCore(backend, ScriptPlayer())
    return core, core.model


class LatePair(EnginePair):
    """An EnginePair whose frames can be kept back, and which remembers every output by its connection."""

    def __init__(self, clock: ManualClock) -> None:
        self.is_delayed = False
        self.late: list[Late] = []
        """Outputs of connections that are over, and which nobody has seen yet."""
        self.seen: list[Late] = []
        """Outputs that were delivered once already, and after whose choice's end any copy is late."""
        self.zombies: list[tuple[int, Core]] = []
        """Engines that work on although nobody listens, with their epochs."""
        self._delayed: list[bytes] = []
        self._unended: list[Late] = []
        super().__init__(scripted_core, clock)

    def feed(self, data: bytes) -> None:
        if self.is_delayed:
            self._delayed.append(data)
            return
        for epoch, delta in outputs_of(data):
            self._unended.append((epoch, delta))
            if delta.finish is not None:
                key = (delta.request_id, delta.choice)
                ended = [late for late in self._unended if (late[1].request_id, late[1].choice) == key]
                self._unended = [late for late in self._unended if late not in ended]
                self.seen += ended
        super().feed(data)

    def release(self) -> None:
        """Delivers what was kept back, in order."""
        self.is_delayed = False
        delayed, self._delayed = self._delayed, []
        for data in delayed:
            self.feed(data)

    def lose(self) -> None:
        self._forget()
        super().lose()

    def abandon(self) -> None:
        """The connection dies, and the engine does not notice: it works on for nobody."""
        self.zombies.append((self.epoch, self.core))
        self._forget()
        self.transport = None
        self.channel.connection_lost(None)

    def inject(self, outputs: list[Late]) -> None:
        """Brings late outputs over the present connection."""
        for epoch, delta in outputs:
            super().feed(encode_frame(StepOutputs(epoch, [delta], self.core.statistics())))
        self.turn()

    def _forget(self) -> None:
        self.late += [late for data in self._delayed for late in outputs_of(data)]
        self.seen += self._unended
        self._delayed, self._unended, self.is_delayed = [], [], False


def outputs_of(data: bytes) -> list[Late]:
    found: list[Late] = []
    for frame in FrameDecoder().feed(data):
        report = decode_report(frame)
        if isinstance(report, StepOutputs):
            found += [(report.epoch, delta) for delta in report.outputs]
    return found


class OpenGate:
    """Lets everybody in, and knows who is in."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.num_double = 0

    async def claim_slot(self, principal: Principal) -> KeySlot:
        return FreeSlot()

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        self.num_double += ticket.ticket_id in self.inside
        self.inside.add(ticket.ticket_id)
        entrant.admit(None)

    def note_started(self, ticket_id: str) -> None:
        pass

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        self.inside.discard(ticket_id)

    def statistics(self) -> Any:
        raise NotImplementedError("nobody asks")


class EndLedger(NullObserver):
    """How each attempt ended: exactly one line for each."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.ends.append(code)

    def request_ended(self, facts: RequestEnded) -> None:
        self.ends.append(facts.outcome)


class ChoiceWriter:
    """Keeps each choice's text apart; writes no bytes that matter."""

    def __init__(self, num_choices: int) -> None:
        self.texts = [""] * num_choices
        self.finished: set[int] = set()
        self.is_done = False

    def open(self) -> bytes:
        return b"^"

    def render(self, index: int, event: object) -> bytes:
        assert index not in self.finished, "a choice goes on after its end"
        if isinstance(event, ContentText):
            self.texts[index] += event.text
        elif isinstance(event, ChoiceFinished):
            self.finished.add(index)
        return b"."

    def close(self) -> bytes:
        self.is_done = True
        return b"$"


@dataclass(slots=True)
class Attempt:
    """One request of one client, and what its client has received. `texts` is what its choices are to say."""

    wire_id: str
    request_id: str
    epoch: int
    texts: list[str]
    driver: RequestDriver
    writer: ChoiceWriter
    stream: DrivenStream | None = None
    error: ServeError | None = None
    is_gone: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its client has nothing more to read."""
        return self.is_gone or self.error is not None or self.writer.is_done

    def check(self) -> None:
        """Whatever has come is a prefix of this attempt's own text, and a finished choice has all of it."""
        for index, text in enumerate(self.writer.texts):
            assert self.texts[index].startswith(text), (self.texts[index], text)
            if index in self.writer.finished:
                assert text == self.texts[index]
        if self.writer.is_done:
            assert self.writer.finished == set(range(len(self.texts)))


@dataclass(slots=True)
class Scene:
    """The whole of it. Every method runs on a loop of the scene's own."""

    clock: ManualClock = field(default_factory=ManualClock)
    gate: OpenGate = field(default_factory=OpenGate)
    ledger: EndLedger = field(default_factory=EndLedger)
    faults: list[BaseException] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    num_stale: int = 0
    """How many outputs have to have been dropped, by the scene's own account."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    pair: LatePair = field(init=False)

    def __post_init__(self) -> None:
        self.pair = LatePair(self.clock)

    def run(self, act: Callable[[], Any]) -> Any:
        async def go() -> Any:
            return act()

        return self.loop.run_until_complete(go())

    def begin(self, wire_id: str, request_id: str, lengths: list[int]) -> Attempt:
        """A client asks. Every choice of every attempt has a text that no other has."""
        number = len(self.attempts)
        texts = [f"<{number}.{index}>" + "x" * length for index, length in enumerate(lengths)]
        script = Script(tuple(ScriptChoice(tuple(text.encode())) for text in texts))
        request = make_request(request_id, "hi", max_tokens=100, num_choices=len(texts), script=script)
        prompt = PreparedPrompt(request, ChoicePlan(ByteVocabulary()), [104, 105])
        context = CallContext(request_id, wire_id, "/v1/x", self.clock.now(), 0)
        call = PreparedCall(context, "m", "fp", [prompt], len(texts), is_stream=True)
        around = Surroundings(
            self.pair.engine, self.gate, Drain(), self.ledger, self.clock, 8, on_fault=self.faults.append
        )

        def start() -> Attempt:
            driver = RequestDriver(call, around, lambda _driver: None)
            attempt = Attempt(wire_id, request_id, self.pair.epoch, texts, driver, ChoiceWriter(len(texts)))
            driver.start()
            return attempt

        attempt: Attempt = self.run(start)
        self.attempts.append(attempt)
        return attempt

    def read(self, attempt: Attempt) -> None:
        """The client takes what there is, as HTTP does: head first, an error before it as a status."""
        self.loop.run_until_complete(self._read(attempt))
        attempt.check()

    async def _read(self, attempt: Attempt) -> None:
        driver = attempt.driver
        try:
            if attempt.stream is None:
                if driver.error is not None:
                    driver.note_sent(Event.SEND_ERROR, 502)
                    raise driver.error
                attempt.stream = DrivenStream(driver, attempt.writer, [])
                await attempt.stream.take()
            driver.nudge()
            if await attempt.stream.take() is not None and attempt.writer.is_done:
                assert await attempt.stream.take() is None
        except ServeError as error:
            attempt.error = error

    def leave(self, attempt: Attempt) -> None:
        """The client's connection dies."""
        attempt.is_gone = True
        self.run(lambda: attempt.driver.disconnect("client_gone"))

    def inject(self, outputs: list[Late]) -> None:
        """Late outputs come over the present connection: all of them are to be dropped."""
        self.num_stale += len(outputs)
        self.run(lambda: self.pair.inject(outputs))

    def restart_unnoticed(self) -> None:
        """The connection dies, a new engine comes, and the old worker goes on."""
        for act in (self.pair.abandon, self.pair.start, self.pair.connect):
            self.run(act)

    def step_zombie(self, index: int) -> int:
        """An old worker finishes a step, and what it says arrives; returns how many outputs that were."""
        epoch, core = self.pair.zombies[index]
        outputs = [(epoch, delta) for delta in core.step(self.clock.now())]
        self.inject(outputs)
        return len(outputs)

    def check(self) -> None:
        """What holds at any moment."""
        for attempt in self.attempts:
            attempt.check()
        assert self.pair.engine.statistics().num_stale_outputs == self.num_stale
        assert (self.faults, self.pair.raised, self.gate.num_double) == ([], [], 0)

    def finish(self) -> None:
        """Lets everything come to its end: each attempt ends once, and nothing is left anywhere. Closes the loop."""
        try:
            self._finish()
        finally:
            self.loop.close()

    def _finish(self) -> None:
        if self.pair.transport is None:
            self.run(self.pair.restart)
        self.run(self.pair.release)
        for _ in range(100):
            self.run(self.pair.run)
            readers = [attempt for attempt in self.attempts if not attempt.is_over]
            if not readers:
                break
            for attempt in readers:
                self.read(attempt)
        self.run(self.pair.run)
        self.check()
        assert all(attempt.is_over for attempt in self.attempts)
        assert all(attempt.driver.machine.work in WORK_OVER for attempt in self.attempts)
        assert len(self.ledger.ends) == len(self.attempts)
        assert self.gate.inside == set()
        gauges = self.pair.engine.statistics().gauges
        assert (gauges.num_running, gauges.num_waiting, gauges.num_held, gauges.blocks_used) == (0, 0, 0, 0)
        assert self.pair.engine.num_open == 0
