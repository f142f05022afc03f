"""Cancellation to the millisecond: the real driver, boundary and engine core on one virtual clock.

A decode step takes 45 ms, a prefill of n tokens 20 ms + n x 0.035 ms. Instants are in milliseconds.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from harness.manual_gate import ManualGate
from harness.timed_pair import TimedPair
from tidegate.backends.simulated import SimulatedShape
from tidegate.engine.framing import encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import StepOutputs
from tidegate.engine.port import Engine
from tidegate.errors import DeadlineExceeded
from tidegate.inference.event import ContentText, StreamEvent
from tidegate.inference.output import TokenDelta
from tidegate.inference.sampling import StopRules
from tidegate.lifecycle.drain import Drain
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.driven_stream import DrivenStream
from tidegate.serving.driver import RequestDriver
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request
from tidegate.text.byte_tokenizer import ByteVocabulary

STEP_MS = 45
LATE = DeadlineExceeded("late")
UNSENT_BYTES = 8
FULL_AT_MS = 20.035 + UNSENT_BYTES * STEP_MS
"""A prompt of one token, and then one character a step."""


class TextWriter:
    """Text and nothing else."""

    def open(self) -> bytes:
        return b""

    def render(self, index: int, event: StreamEvent) -> bytes:
        return event.text.encode() if isinstance(event, ContentText) else b""

    def close(self) -> bytes:
        return b""


class Heard:
    """An `Engine` that keeps what it is asked to abort."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.submit = engine.submit
        self.hold = engine.hold
        self.statistics = engine.statistics
        self.aborts: list[tuple[str, int | None]] = []

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.aborts.append((request_id, choice))
        self._engine.abort(request_id, choice)


class Ends(NullObserver):
    def __init__(self) -> None:
        self.outcomes: list[str] = []
        self.num_tokens: list[int] = []

    def request_ended(self, facts: RequestEnded) -> None:
        self.outcomes.append(facts.outcome)
        self.num_tokens.append(facts.num_completion_tokens)


@dataclass(slots=True)
class Scene:
    """An engine at rest at 0 ms, and the requests that come to it."""

    max_sequences: int = 8
    pair: TimedPair = field(init=False)
    engine: Heard = field(init=False)
    gate: ManualGate = field(default_factory=ManualGate)
    ends: Ends = field(default_factory=Ends)
    settled: list[RequestDriver] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = SimulatedShape(max_sequences=self.max_sequences, num_blocks=256)
        self.pair = TimedPair(ManualClock(now=0.0), shape)
        self.engine = Heard(self.pair.engine)

    def reader(self, name: str, prompt: str, *, n: int = 1, max_tokens: int) -> "Reader":
        """A stream of `max_tokens` characters, each the successor of the one before."""
        around = Surroundings(
            self.engine, self.gate, Drain(), self.ends, self.pair.clock, UNSENT_BYTES, self.faults.append
        )
        stop = StopRules(max_tokens=max_tokens, ignore_eos=True)
        request = make_request(name, prompt, num_choices=n, stop=stop)
        prepared = PreparedPrompt(request, ChoicePlan(ByteVocabulary()), list(prompt.encode()))
        context = CallContext(name, "w", "/v1/completions", self.pair.clock.now(), 0)
        call = PreparedCall(context, "m", "fp", [prepared], n, is_stream=True)
        return Reader(RequestDriver(call, around, self.settled.append), self.pair.clock.now)

    def at(self, instant_ms: float, act: Callable[[], None]) -> None:
        self.pair.at(round(instant_ms / 1000, 9), act)

    def run_until(self, instant_ms: float) -> None:
        self.pair.run_until(round(instant_ms / 1000, 9))

    def steps_ms(self) -> list[tuple[float, float]]:
        return [(round(begin * 1000, 3), round(end * 1000, 3)) for begin, end, _ in self.pair.steps]

    def check_over(self, *drivers: RequestDriver) -> None:
        """The requests have ended once, in this order, and nothing of them is left anywhere."""
        assert self.settled == list(drivers)
        assert (self.pair.engine.num_open, self.pair.board.num_live) == (0, 0)
        assert (self.gate.inside, self.gate.waiting) == (set(), {})
        assert set(self.gate.left.values()) == {1}
        assert self.faults == self.pair.raised == []
        self.pair.core.check_integrity()


def read(stream: DrivenStream) -> bytes:
    """Takes what waits; fails where a reader would have to wait."""
    try:
        stream.take().send(None)
    except StopIteration as taken:
        data: bytes = taken.value
        return data
    raise AssertionError("there is nothing to read")


def play(scene: Callable[[], None]) -> None:
    async def main() -> None:
        scene()

    asyncio.run(main())


def take_now(stream: DrivenStream) -> bytes | None:
    """Takes from a stream that has something to give."""
    try:
        stream.take().send(None)
    except StopIteration as taken:
        data: bytes | None = taken.value
        return data
    raise AssertionError("a reader would have to wait")


class Reader:
    """Reads when told to, and keeps what it has read, and when."""

    def __init__(self, driver: RequestDriver, now: Callable[[], float]) -> None:
        self.driver = driver
        self._now = now
        self.stream = DrivenStream(driver, TextWriter(), [])
        self.text = b""
        self.times: list[float] = []

    def read(self) -> None:
        """Takes what waits, if anything does."""
        if self.driver.mailbox.num_bytes or self.driver.is_drained:
            text = take_now(self.stream)
            if text:
                self.text += text
                self.times.append(self._now())


def test_a_full_mailbox_a_hold_a_dead_socket_and_one_step_wasted() -> None:  # SLOW-2 DL-2
    def scene() -> None:
        world, zero = Scene(), FULL_AT_MS
        reader = world.reader("r", "!", max_tokens=200)
        driver = reader.driver
        told: dict[str, tuple[int, int, int]] = {}

        def look(name: str) -> Callable[[], None]:
            def keep() -> None:
                told[name] = (world.pair.blocks_used, driver.mailbox.num_bytes, len(world.pair.steps))

            return keep

        def die() -> None:
            reader.stream.close("client_gone")
            assert not driver.machine.is_reply_open

        driver.start()
        world.at(zero + 0.5, look("full"))
        world.at(zero + 119, look("held"))
        world.at(zero + 120, reader.read)
        world.at(zero + 120, die)
        world.at(zero + 164, look("in flight"))
        world.at(zero + 165.5, look("after"))
        world.run_until(zero + 1000)

        # 0 ms: full. The step that has begun ends at 45 ms; by then the hold has been read, and nothing more runs.
        num_steps = UNSENT_BYTES + 1
        assert told["full"] == (1, UNSENT_BYTES + 1, num_steps)
        assert told["held"] == (1, UNSENT_BYTES + 2, num_steps + 1)
        # 120 ms: the reader takes what waits, so a step begins; then its socket dies, and nothing is written any more.
        assert world.steps_ms()[num_steps:] == [(zero, zero + 45), (zero + 120, round(zero + 165, 3))]
        assert reader.text == bytes(ord("!") + 1 + i for i in range(UNSENT_BYTES + 2))
        assert told["in flight"] == (1, 0, num_steps + 1)
        # 165 ms: that step ends, its token is counted and dropped, and the blocks are back: one step was wasted.
        assert told["after"] == (0, 0, num_steps + 2)
        assert (world.ends.outcomes, world.ends.num_tokens) == (["client_gone"], [UNSENT_BYTES + 3])
        world.check_over(driver)
        # The generation is closed: whatever still came of it would be stale.
        num_stale = world.pair.engine.statistics().num_stale_outputs
        late = StepOutputs(world.pair.epoch, [TokenDelta("r", 0, [65])], EngineGauges())
        world.pair.feed(encode_frame(late))
        assert world.pair.engine.statistics().num_stale_outputs == num_stale + 1
        assert driver.counts.num_completion == UNSENT_BYTES + 3

    play(scene)


def test_a_held_stream_goes_on_to_the_same_text_and_its_neighbour_never_notices() -> None:  # SLOW-2
    def scene() -> None:
        texts: list[dict[str, bytes]] = []
        times: list[list[float]] = []
        most_waiting: list[int] = []
        for pace_ms in (10, 900):
            world = Scene()
            readers = {name: world.reader(name, name, max_tokens=25) for name in "ab"}
            for name, reader in readers.items():
                reader.driver.start()
                for turn in range(1, 600):
                    if name == "b" or turn * 10 % pace_ms == 0:
                        world.at(turn * 10, reader.read)
            held = readers["a"].driver.mailbox
            for turn in range(600):
                world.at(turn * 10, partial(lambda mailbox: most_waiting.append(mailbox.num_bytes), held))
            world.run_until(6000)
            assert world.ends.outcomes == ["length", "length"]
            texts.append({name: reader.text for name, reader in readers.items()})
            times.append(readers["b"].times)
        assert texts[0] == texts[1] == {name: bytes(ord(name) + 1 + i for i in range(25)) for name in "ab"}
        assert times[0] == times[1]
        assert max(most_waiting) == UNSENT_BYTES + 2, "the bound, and what the step in flight adds"

    play(scene)


@dataclass(frozen=True, slots=True)
class Phase:
    """Where a request is when it ends early, at `die_ms`."""

    die_ms: float
    prompt: str = "r"
    n: int = 1
    max_tokens: int = 60
    max_sequences: int = 8
    is_gate_open: bool = True


PHASES = {
    "queued at the gate": Phase(100, is_gate_open=False),
    "queued in the engine": Phase(100, max_sequences=1),
    "prefill": Phase(60, prompt="r" * 1500),
    "decode": Phase(300),
    "between choices": Phase(300, n=4, max_tokens=5, max_sequences=3),
}


def die(reader: Reader, cause: str) -> None:
    if cause == "client_gone":
        reader.stream.close(cause)
        return
    reader.driver.expire(LATE, cause)
    with pytest.raises(DeadlineExceeded):
        while take_now(reader.stream) is not None:
            pass


@pytest.mark.parametrize("cause", ["client_gone", "deadline"])
@pytest.mark.parametrize("name", PHASES)
def test_in_every_phase_the_blocks_are_back_by_the_next_step(name: str, cause: str) -> None:  # DL-2 DL-4
    """Beside a neighbour of one block, whose text is what it always is."""

    def scene() -> None:
        phase = PHASES[name]
        world = Scene(phase.max_sequences)
        neighbour = world.reader("b", "b", max_tokens=15)
        neighbour.driver.start()
        world.gate.is_open = phase.is_gate_open
        victim = world.reader("r", phase.prompt, n=phase.n, max_tokens=phase.max_tokens)
        victim.driver.start()
        used: list[tuple[float, int]] = []
        for turn in range(1, 200):
            world.at(turn * 10, neighbour.read)
            world.at(turn * 10 + 5, lambda: used.append((world.pair.clock.now() * 1000, world.pair.blocks_used)))
        world.at(phase.die_ms, partial(die, victim, cause))
        for request_id in ("r", "unknown"):
            world.at(phase.die_ms, partial(world.engine.abort, request_id))
        world.run_until(2000)

        in_flight_until = max(end for begin, end in world.steps_ms() if begin <= phase.die_ms)
        ended_at = world.steps_ms()[-1][1]
        after = [blocks for at, blocks in used if in_flight_until < at < ended_at]
        assert after
        assert set(after) == {1}, "a step later only the neighbour's block is in use"
        assert neighbour.text == bytes(ord("b") + 1 + i for i in range(15))
        assert world.ends.outcomes == [cause, "length"]
        assert world.engine.aborts[:-2] == ([("r", None)] if phase.is_gate_open else [])
        world.check_over(victim.driver, neighbour.driver)

    play(scene)
