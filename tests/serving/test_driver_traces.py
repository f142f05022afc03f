"""What a driver tells of a request that never came to its first token: when it left, and what it was told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.errors import EngineRefused, NoCapacity, ServeError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import JsonObjectSpec
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.ticket import Ticket
from tidegate.observability.access_log import AccessRecord, HttpEnded
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.observability.request_spans import SpanSite, spans_of
from tidegate.observability.request_trace import RequestTrace
from tidegate.observability.span import Span
from tidegate.observability.traced_facts import TracedReply
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.constraint import Constraint
from tidegate.serving.driver import RequestDriver
from tidegate.serving.gate import Entrant, KeySlot
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request
from tidegate.text.byte_tokenizer import ByteVocabulary

TRACE = RequestTrace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", None, True, 1)


class OpenGate:
    """Lets in when it is told to."""

    def __init__(self) -> None:
        self.entrant: Entrant | None = None

    async def claim_slot(self, _principal: object) -> KeySlot:
        raise AssertionError

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        self.entrant = entrant

    def note_started(self, ticket_id: str) -> None:
        pass

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        pass


@dataclass(slots=True)
class ShortEngine:
    """Takes a request, or refuses it."""

    refusal: ServeError | None = None
    sinks: list[DeltaSink] = field(default_factory=list)

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sinks.append(sink)

    def abort(self, request_id: str, choice: int | None = None) -> None:
        pass

    def hold(self, request_id: str, *, held: bool) -> None:
        pass

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)


class Counts(NullObserver):
    def __init__(self) -> None:
        self.counted: list[str] = []

    def request_ended(self, facts: RequestEnded) -> None:
        self.counted.append("ended")

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.counted.append(code)


class Scene:
    """A driver whose request was received a second ago."""

    def __init__(self, engine: ShortEngine, **asked: Any) -> None:
        self.clock, self.gate, self.engine, self.counts = ManualClock(), OpenGate(), engine, Counts()
        self.told: list[RequestEnded | None] = []
        around = Surroundings(engine, self.gate, Drain(), self.counts, self.clock, 1024, _raise)
        record = AccessRecord(lambda _reply, work: self.told.append(work))
        context = CallContext("r0", "w0", "/v1/chat/completions", self.clock.now(), 0, record=record, trace=TRACE)
        prompts = [PreparedPrompt(make_request("r0", "hi"), ChoicePlan(ByteVocabulary()), [104, 105])]
        self.driver = RequestDriver(
            PreparedCall(context, "m", "fp", prompts, 1, False, **asked), around, lambda _: None
        )
        self.clock.advance(1)
        self.driver.start()
        self.clock.advance(2)

    def admit(self) -> None:
        assert self.gate.entrant is not None
        self.gate.entrant.admit(None)

    def refuse(self, error: ServeError) -> None:
        assert self.gate.entrant is not None
        self.gate.entrant.refuse(error)

    def spans(self, status: int | None) -> dict[str, Span]:
        """The reply is over four seconds after everything else."""
        self.clock.advance(4)
        if status is None:
            self.driver.disconnect("client_gone")
        else:
            self.driver.note_sent(Event.SEND_ERROR, status)
        wire = TracedReply(trace=TRACE, received_at=0.0, first_byte_s=None, is_tls=False, http_version="1.1", port=1)
        context = self.driver.call.context
        reply = HttpEnded(
            wire_id="w0", route=context.route, method="POST", status=status, outcome="error", duration_s=9, wire=wire
        )
        context.record.end_reply(reply)
        [work] = self.told
        made = spans_of(reply, work, SpanSite("host"))
        assert made is not None
        return {span.name: span for span in made.spans}


def _raise(fault: BaseException) -> None:
    raise fault


def by_gate(scene: Scene) -> None:
    scene.refuse(NoCapacity("full", retry_after_s=1))


def by_engine(scene: Scene) -> None:
    scene.admit()


ENDS: dict[str, tuple[Callable[[Scene], None], ServeError | None, int, str, bool]] = {
    "the gate": (by_gate, None, 503, "no_capacity", False),
    "an engine that holds it for poison": (by_engine, EngineRefused("twice"), 502, "engine_refused", True),
}


@pytest.mark.parametrize(("end", "refusal", "status", "code", "was_admitted"), ENDS.values(), ids=ENDS)
def test_a_request_that_is_refused_has_a_wait_that_ends_with_the_refusal(
    end: Callable[[Scene], None], refusal: ServeError | None, status: int, code: str, was_admitted: bool
) -> None:
    async def test() -> None:
        scene = Scene(ShortEngine(refusal))
        end(scene)
        found = scene.spans(status)
        assert scene.counts.counted == [code], "counted as refused, and not as work"
        assert (found["queue"].start, found["queue"].end) == (1, 3)
        assert (found["chat m"].start, found["chat m"].end) == (1, 3), "not when its client had read the error"
        assert found["queue"].error == found["chat m"].error == code
        assert found["queue"].attributes["tidegate.queue.outcome"] == code
        assert found["queue"].attributes.get("tidegate.queue.gate_s") == (2.0 if was_admitted else None)
        assert not {"prefill", "decode", "write"} & found.keys()

    asyncio.run(test())


@pytest.mark.parametrize(("queue_s", "stages"), [(0.0, {"queue"}), (0.5, {"queue", "prefill"})], ids=["queued", "read"])
def test_an_abort_that_the_engine_says_nothing_of_was_of_a_request_that_waited(
    queue_s: float, stages: set[str]
) -> None:
    async def test() -> None:
        scene = Scene(ShortEngine())
        scene.admit()
        scene.clock.advance(1)
        scene.driver.disconnect("client_gone")
        ended = TokenDelta("r0", 0, [], EngineFinish.ABORTED, num_prompt_tokens=2, queue_s=queue_s)
        scene.engine.sinks[0].deliver(ended)
        found = scene.spans(None)
        assert {"queue", "prefill", "decode"} & found.keys() == stages
        assert found["chat m"].end == 4
        cut = found[max(stages & {"prefill"}, default="queue")]
        assert (cut.end, cut.error) == (4, "client_gone")

    asyncio.run(test())


FORMATS = {
    "response_format": "json",
    "response_format.json_schema.schema": "json",
    "structured_outputs.json": "json",
    "structured_outputs.regex": None,
    "tools": None,
}


@pytest.mark.parametrize(("param", "output_type"), FORMATS.items(), ids=FORMATS)
def test_what_was_asked_for_is_in_the_span_of_the_work(param: str, output_type: str | None) -> None:
    async def test() -> None:
        constraint = Constraint(JsonObjectSpec(), param, str)
        scene = Scene(ShortEngine(), given_seed=7, constraint=constraint)
        by_gate(scene)
        attributes = scene.spans(503)["chat m"].attributes
        assert attributes["gen_ai.request.seed"] == 7
        assert attributes.get("gen_ai.output.type") == output_type

    asyncio.run(test())
