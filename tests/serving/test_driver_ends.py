"""The moments in which two ends meet: the text is complete, the engine has not let go, and something else happens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tidegate.clock import Clock
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.errors import EngineLost, EngineUnavailable, QueueFull, ServeError, ServerDraining
from tidegate.inference.event import ChoiceFinished, ContentText
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain, DrainEvent
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.ticket import Ticket
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.driven_stream import DrivenStream
from tidegate.serving.driver import RequestDriver
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request
from tidegate.text.byte_tokenizer import ByteVocabulary
from tidegate.text.vocabulary import Vocabulary

LOST, DRAINING = EngineLost("gone"), ServerDraining("bye", retry_after_s=1)


class ObedientEngine:
    """An `Engine` that keeps what it is asked, and answers when the test says so."""

    def __init__(self, refusal: ServeError | None = None, refuse_after: int = 0) -> None:
        self.sinks: dict[str, DeltaSink] = {}
        self.aborts: list[tuple[str, int | None]] = []
        self.holds: list[bool] = []
        self._refusal = refusal
        self._refuse_after = refuse_after

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        if self._refusal is not None and len(self.sinks) >= self._refuse_after:
            raise self._refusal
        self.sinks[request.request_id] = sink

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.aborts.append((request_id, choice))

    def hold(self, request_id: str, *, held: bool) -> None:
        self.holds.append(held)

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)

    def say(self, text: str, finish: EngineFinish | None = None, *, choice: int = 0, request_id: str = "r0") -> None:
        delta = TokenDelta(request_id, choice, list(text.encode()), finish, num_prompt_tokens=2)
        self.sinks[request_id].deliver(delta)

    def lose(self) -> None:
        for sink in self.sinks.values():
            sink.fail(LOST)


class Ledger(NullObserver):
    def __init__(self) -> None:
        self.ended: list[RequestEnded] = []
        self.refused: list[tuple[str, int, str]] = []
        self.num_tokens = 0

    def request_ended(self, facts: RequestEnded) -> None:
        self.ended.append(facts)

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.refused.append((route, status, code))

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        self.num_tokens += num_tokens


class PlainWriter:
    """Text as it is, a bar at each finish, a dot at the end."""

    def open(self) -> bytes:
        return b"^"

    def render(self, index: int, event: object) -> bytes:
        if isinstance(event, ContentText):
            return event.text.encode()
        return b"|" if isinstance(event, ChoiceFinished) else b"?"

    def close(self) -> bytes:
        return b"."


class BrokenVocabulary(ByteVocabulary):
    def token_bytes(self, token_id: int) -> bytes:
        if token_id == ord("!"):
            raise RuntimeError("broken")
        return super().token_bytes(token_id)


@dataclass(slots=True)
class Bench:
    """One driver and everything around it."""

    num_prompts: int = 1
    num_choices: int = 1
    is_stream: bool = False
    vocabulary: Vocabulary = field(default_factory=ByteVocabulary)
    max_sequences: int = 8
    unsent_bytes: int = 1024
    engine: ObedientEngine = field(default_factory=ObedientEngine)
    ledger: Ledger = field(default_factory=Ledger)
    faults: list[BaseException] = field(default_factory=list)
    settled: list[RequestDriver] = field(default_factory=list)
    drain: Drain = field(default_factory=Drain)
    admission: AdmissionController = field(init=False)
    driver: RequestDriver = field(init=False)

    def build(self) -> "Bench":
        clock: Clock = ManualClock()
        self.admission = AdmissionController(AdmissionLimits(self.max_sequences, 0, 100), self.drain)
        gate = LocalGate(self.admission, clock)
        around = Surroundings(self.engine, gate, self.drain, self.ledger, clock, self.unsent_bytes, self.faults.append)
        plan = ChoicePlan(self.vocabulary, stop_strings=("stop",))
        prompts = [
            PreparedPrompt(make_request(f"r{i}", "hi", num_choices=self.num_choices), plan, [104, 105])
            for i in range(self.num_prompts)
        ]
        context = CallContext("r0", "w0", "/v1/x", 0.0, 0)
        call = PreparedCall(context, "m", "fp", prompts, self.num_choices, self.is_stream)
        self.driver = RequestDriver(call, around, self.settled.append)
        return self

    def check_over(self, outcome: str, code: str | None = None) -> None:
        """The request has ended once, and holds nothing."""
        assert [(facts.outcome, facts.code) for facts in self.ledger.ended] == [(outcome, code)]
        assert self.settled == [self.driver]
        assert self.admission.statistics().num_requests == 0
        assert self.faults == []
        self.admission.check_integrity()


def start_refused(bench: Bench, kind: type[ServeError]) -> None:
    bench.driver.start()
    assert isinstance(bench.driver.error, kind)
    bench.driver.note_sent(Event.SEND_ERROR, 503)


async def read_stream(bench: Bench) -> tuple[bytes, ServeError | None]:
    """Reads a stream as HTTP does: bytes until None, or an error that HTTP would write."""
    stream = DrivenStream(bench.driver, PlainWriter(), [])
    data = b""
    try:
        while (part := await stream.take()) is not None:
            data += part
    except ServeError as error:
        return data, error
    finally:
        stream.close("done")
    return data, None


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    asyncio.run(main())


ENDS: dict[str, Callable[[Bench], None]] = {
    "the engine is lost": lambda bench: bench.engine.lose(),
    "the drain ends": lambda bench: bench.driver.expire(DRAINING, "shutdown"),
    "both": lambda bench: (bench.engine.lose(), bench.driver.expire(DRAINING, "shutdown"))[1],
}


@pytest.mark.parametrize("end", ENDS)
def test_an_answer_that_a_stop_string_completed_outlives_its_engine(end: str) -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("yes stop no")
        assert bench.engine.aborts == [("r0", None)]
        ENDS[end](bench)
        assert await read_stream(bench) == (b"^yes |.", None)
        if end == "the drain ends":
            bench.engine.say("", EngineFinish.ABORTED)
        bench.check_over("stop")

    run(scene)


@pytest.mark.parametrize("end", ENDS)
def test_a_whole_answer_that_a_stop_string_completed_outlives_its_engine(end: str) -> None:
    async def scene() -> None:
        bench = Bench().build()
        bench.driver.start()
        bench.engine.say("yes stop no")
        ENDS[end](bench)
        events = await bench.driver.take()
        assert events is not None
        assert await bench.driver.take() is None
        assert bench.driver.error is None
        bench.driver.note_sent(Event.SEND_WHOLE, 200)
        if end == "the drain ends":
            bench.engine.say("", EngineFinish.ABORTED)
        bench.check_over("stop")

    run(scene)


def test_an_answer_whose_engine_has_finished_is_sent_to_its_end_after_the_drain() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("all of it", EngineFinish.EOS)
        bench.driver.expire(DRAINING, "shutdown")
        assert await read_stream(bench) == (b"^all of it|.", None)
        bench.check_over("stop")

    run(scene)


def test_an_unfinished_stream_gives_its_text_and_then_the_error() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("half ")
        bench.engine.lose()
        assert await read_stream(bench) == (b"^half ", LOST)
        bench.check_over("error", "engine_lost")

    run(scene)


def test_of_several_choices_one_that_is_complete_does_not_save_the_others() -> None:
    async def scene() -> None:
        bench = Bench(num_choices=2).build()
        bench.driver.start()
        bench.engine.say("yes stop", choice=0)
        assert bench.engine.aborts == [("r0", 0)]
        bench.engine.say("half", choice=1)
        bench.engine.lose()
        assert await bench.driver.take() is not None
        assert await bench.driver.take() is None
        assert bench.driver.error is LOST
        bench.driver.note_sent(Event.SEND_ERROR, 502)
        bench.check_over("error", "engine_lost")

    run(scene)


def test_the_first_of_two_errors_counts() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("half ")
        bench.driver.expire(DRAINING, "shutdown")
        bench.engine.lose()
        assert await read_stream(bench) == (b"^half ", DRAINING)
        bench.check_over("shutdown", "server_draining")

    run(scene)


def test_a_client_that_goes_before_it_is_told_of_an_error_counts_as_gone() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("half ")
        bench.engine.lose()
        bench.driver.disconnect("client_gone")
        bench.check_over("client_gone")

    run(scene)


def test_a_client_that_goes_after_the_end_of_a_drain_counts_under_the_drain() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True).build()
        bench.driver.start()
        bench.engine.say("half ")
        bench.driver.expire(DRAINING, "shutdown")
        bench.driver.disconnect("client_gone")
        assert bench.engine.aborts == [("r0", None)]
        bench.engine.say("", EngineFinish.ABORTED)
        bench.check_over("shutdown")

    run(scene)


def test_what_comes_after_an_abort_is_taken_note_of_and_not_delivered() -> None:
    async def scene() -> None:
        bench = Bench(num_choices=2).build()
        bench.driver.start()
        bench.driver.disconnect("client_gone")
        assert bench.engine.aborts == [("r0", None)]
        bench.engine.say("late", choice=0)
        assert bench.admission.statistics().num_requests == 1, "the engine has not let go"
        bench.engine.say("", EngineFinish.ABORTED, choice=0)
        bench.engine.say("later", EngineFinish.EOS, choice=1)
        assert await bench.driver.take() is None
        bench.check_over("client_gone")
        assert bench.ledger.ended[0].num_completion_tokens == bench.ledger.num_tokens == len("late" + "later")

    run(scene)


@pytest.mark.parametrize("num_taken", [0, 1, 2])
def test_a_batch_that_the_engine_takes_in_part_is_given_back_whole(num_taken: int) -> None:
    async def scene() -> None:
        refusal = EngineUnavailable("starting", retry_after_s=1)
        bench = Bench(num_prompts=3, engine=ObedientEngine(refusal, num_taken)).build()
        start_refused(bench, EngineUnavailable)
        assert {request_id for request_id, _ in bench.engine.aborts} >= set(bench.engine.sinks)
        for request_id in bench.engine.sinks:
            bench.engine.say("", EngineFinish.ABORTED, request_id=request_id)
        assert bench.ledger.refused == [("/v1/x", 503, "engine_unavailable")]
        assert (bench.ledger.ended, bench.settled) == ([], [bench.driver])
        assert bench.admission.statistics().num_requests == 0

    run(scene)


def test_a_request_that_finds_no_place_is_refused_and_never_ended() -> None:
    async def scene() -> None:
        bench = Bench(max_sequences=1).build()
        bench.admission.enter(Ticket("another", "", 1, 1, 1, 1, 0.0), 0.0)
        bench.admission.poll(0.0)
        start_refused(bench, QueueFull)
        assert (bench.ledger.refused, bench.ledger.ended) == ([("/v1/x", 429, "queue_full")], [])
        assert (bench.settled, bench.engine.sinks) == ([bench.driver], {})
        assert bench.admission.statistics().num_requests == 1

    run(scene)


def test_a_request_that_comes_in_a_drain_is_refused() -> None:
    async def scene() -> None:
        bench = Bench().build()
        bench.drain.apply(DrainEvent.BEGIN)
        start_refused(bench, ServerDraining)
        assert (bench.ledger.refused, bench.ledger.ended) == ([("/v1/x", 503, "server_draining")], [])

    run(scene)


@pytest.mark.parametrize("finish", [None, EngineFinish.EOS])
def test_a_fault_of_ours_in_one_delta_ends_that_request_alone(finish: EngineFinish | None) -> None:
    async def scene() -> None:
        bench = Bench(vocabulary=BrokenVocabulary()).build()
        bench.driver.start()
        bench.engine.say("fine ")
        bench.engine.say("!", finish)
        assert [str(fault) for fault in bench.faults] == ["broken"]
        assert bench.engine.aborts == [("r0", None)]
        assert bench.driver.error is not None
        bench.driver.note_sent(Event.SEND_ERROR, 500)
        bench.engine.say("", EngineFinish.ABORTED)
        bench.faults.clear()
        bench.check_over("error", "internal_error")

    run(scene)


def test_a_fault_of_ours_in_the_reply_is_told_and_counted_once() -> None:
    async def scene() -> None:
        bench = Bench().build()
        bench.driver.start()
        bench.engine.say("all of it", EngineFinish.EOS)
        bench.driver.give_up(LOST)
        bench.driver.give_up(DRAINING)
        bench.driver.disconnect("client_gone")
        bench.check_over("error", "engine_lost")

    run(scene)


def test_a_reader_that_is_behind_holds_the_engine_until_it_reads() -> None:
    async def scene() -> None:
        bench = Bench(is_stream=True, unsent_bytes=10).build()
        bench.driver.start()
        bench.engine.say("0123456789")
        assert bench.engine.holds == []
        bench.engine.say("a")
        bench.engine.say("b")
        assert bench.engine.holds == [True]
        await bench.driver.take()
        assert bench.engine.holds == [True, False]
        bench.driver.disconnect("client_gone")
        bench.engine.say("", EngineFinish.ABORTED)
        bench.check_over("client_gone")

    run(scene)
