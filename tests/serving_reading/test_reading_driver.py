"""A call of many texts: how many the engine has at once, and how the call ends when one of them, or all, do not."""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.errors import DeadlineExceeded, EngineLost, EngineRefused, EngineUnavailable, InternalError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.events import Event
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.choice import ChoicePlan
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.driver import RequestDriver
from tidegate.serving.embedding_assembler import EmbeddingAssembler, EmbeddingForm
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.prepared import CallContext, PreparedCall, PreparedPrompt
from tidegate.serving.read_choice import VectorChoice
from tidegate.serving.surroundings import Surroundings
from tidegate.testing.manual_clock import ManualClock
from tidegate.text.byte_tokenizer import ByteVocabulary

LENGTH = 3
"""Tokens of every text."""


class PoolingEngine:
    """Keeps what it is given, and pools when the test says so. Refuses from the `refuse_at`-th request on."""

    def __init__(self, refuse_at: int | None = None) -> None:
        self.sinks: dict[str, DeltaSink] = {}
        self.aborts: list[str] = []
        self.num_submitted = 0
        self._refuse_at = refuse_at

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        if self._refuse_at is not None and self.num_submitted >= self._refuse_at:
            raise EngineUnavailable("not now")
        self.num_submitted += 1
        self.sinks[request.request_id] = sink

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.aborts.append(request_id)

    def hold(self, request_id: str, *, held: bool) -> None:
        raise AssertionError("nothing of these is ever held")

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)

    def pool(self, index: int, *numbers: float) -> None:
        data = struct.pack(f"<{len(numbers)}f", *numbers)
        self._end(index, EngineFinish.POOLED, pooled=data)

    def fail(self, index: int) -> None:
        self._end(index, EngineFinish.FAILED, error="no")

    def confirm_aborts(self) -> None:
        for request_id in self.aborts:
            if request_id in self.sinks:
                self._end(int(request_id), EngineFinish.ABORTED)

    def _end(self, index: int, finish: EngineFinish, pooled: bytes | None = None, error: str | None = None) -> None:
        delta = TokenDelta(str(index), 0, [], finish, num_prompt_tokens=LENGTH, error=error, pooled=pooled)
        self.sinks.pop(str(index)).deliver(delta)


class Ends(NullObserver):
    def __init__(self) -> None:
        self.ended: list[RequestEnded] = []
        self.refused: list[str] = []

    def request_ended(self, facts: RequestEnded) -> None:
        self.ended.append(facts)

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.refused.append(code)


@dataclass(slots=True)
class Scene:
    num_texts: int
    width: int | None = 2
    engine: PoolingEngine = field(default_factory=PoolingEngine)
    ends: Ends = field(default_factory=Ends)
    faults: list[BaseException] = field(default_factory=list)
    admission: AdmissionController = field(init=False)
    driver: RequestDriver = field(init=False)

    def start(self) -> "Scene":
        drain = Drain()
        self.admission = AdmissionController(AdmissionLimits(4, 0, 10_000), drain)
        gate = LocalGate(self.admission, ManualClock())
        around = Surroundings(self.engine, gate, drain, self.ends, ManualClock(), 1024, self.faults.append)
        plan = ChoicePlan(ByteVocabulary())
        prompts = [
            PreparedPrompt(
                InferenceRequest(str(i), b"\0" * 4 * LENGTH, SamplingParams(), StopRules(0), pooling=PoolingTask.EMBED),
                plan,
                [0] * LENGTH,
                make_reader=VectorChoice,
            )
            for i in range(self.num_texts)
        ]
        assemble = partial(EmbeddingAssembler, num_inputs=self.num_texts, form=EmbeddingForm(normalize=False))
        call = PreparedCall(
            CallContext("0", "w", "/v1/embeddings", 0.0, 0),
            "m",
            "fp",
            prompts,
            1,
            False,
            make_assembler=assemble,
            width=self.width,
        )
        self.driver = RequestDriver(call, around, lambda _: None)
        self.driver.start()
        return self

    async def answer(self) -> list[float]:
        """Returns the first number of each row. Raises what the client would be told."""
        make = self.driver.call.make_assembler
        assert make is not None
        assembler = make(ReplyIdentity("i", 0, "m", "fp"))
        while (items := await self.driver.take()) is not None:
            for index, event in items:
                assembler.feed(index, event)
        if self.driver.error is not None:
            self.driver.note_sent(Event.SEND_ERROR, 502)
            raise self.driver.error
        self.driver.note_sent(Event.SEND_WHOLE, 200)
        return [row["embedding"][0] for row in json.loads(assembler.result(self.driver.counts))["data"]]

    def check_over(self, outcome: str, num_prompt_tokens: int) -> None:
        assert [(facts.outcome, facts.num_prompt_tokens) for facts in self.ends.ended] == [(outcome, num_prompt_tokens)]
        assert self.admission.statistics().num_requests == 0
        assert self.engine.sinks == {}
        self.admission.check_integrity()


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    asyncio.run(main())


@pytest.mark.parametrize("width", [1, 2, 5, None])
def test_the_engine_has_so_many_at_once_and_rows_keep_their_order(width: int | None) -> None:
    async def scene() -> None:
        test = Scene(5, width).start()
        most = 0
        while test.engine.sinks:
            most = max(most, len(test.engine.sinks))
            last = max(test.engine.sinks, key=int)
            test.engine.pool(int(last), float(last))
        assert most == (width or 5)
        assert await test.answer() == [0.0, 1.0, 2.0, 3.0, 4.0]
        test.check_over("read", 5 * LENGTH)

    run(scene)


def test_admission_counts_no_more_rows_than_the_engine_has_at_once() -> None:
    async def scene() -> None:
        test = Scene(100, 2).start()
        assert test.admission.statistics().num_sequences == 2
        test.driver.disconnect("client_gone")
        test.engine.confirm_aborts()
        test.check_over("client_gone", 2 * LENGTH)

    run(scene)


def test_one_text_that_fails_ends_the_call_and_aborts_the_others() -> None:
    async def scene() -> None:
        test = Scene(5, 3).start()
        test.engine.pool(0, 1.0)
        test.engine.fail(2)
        assert {"1", "3"} <= set(test.engine.aborts)
        assert test.engine.num_submitted == 4
        test.engine.confirm_aborts()
        with pytest.raises(EngineRefused):
            await test.answer()
        test.check_over("error", 4 * LENGTH)

    run(scene)


def test_a_vector_that_is_no_vector_is_a_fault_of_ours_and_harms_only_this_call() -> None:  # C175-1
    async def scene() -> None:
        test = Scene(3, 2).start()
        test.engine.pool(0, float("nan"))
        test.engine.confirm_aborts()
        with pytest.raises(InternalError):
            await test.answer()
        assert len(test.faults) == 1
        test.check_over("error", 2 * LENGTH)

    run(scene)


@pytest.mark.parametrize("num_done", [0, 1, 4])
def test_an_engine_that_is_lost_in_the_middle_ends_the_call(num_done: int) -> None:
    async def scene() -> None:
        test = Scene(5, 2).start()
        for index in range(num_done):
            test.engine.pool(index, 1.0)
        for sink in [test.engine.sinks.pop(name) for name in list(test.engine.sinks)]:
            sink.fail(EngineLost("gone"))
        with pytest.raises(EngineLost):
            await test.answer()
        test.check_over("error", min(num_done + 2, 5) * LENGTH)

    run(scene)


def test_an_engine_that_is_lost_after_the_last_text_takes_nothing_back() -> None:
    async def scene() -> None:
        test = Scene(1).start()
        sink = test.engine.sinks["0"]
        test.engine.pool(0, 1.0)
        sink.fail(EngineLost("gone"))
        assert await test.answer() == [1.0]
        test.check_over("read", LENGTH)

    run(scene)


def test_a_deadline_in_the_middle_aborts_what_is_in_and_drops_the_rest() -> None:
    async def scene() -> None:
        test = Scene(6, 2).start()
        test.engine.pool(0, 1.0)
        test.driver.expire(DeadlineExceeded("late"), cause="deadline")
        assert set(test.engine.aborts) == {"1", "2"}
        test.engine.confirm_aborts()
        with pytest.raises(DeadlineExceeded):
            await test.answer()
        test.check_over("deadline", 3 * LENGTH)

    run(scene)


@pytest.mark.parametrize("refuse_at", [0, 1, 2, 3])
def test_a_text_that_the_engine_does_not_take_ends_the_call(refuse_at: int) -> None:
    async def scene() -> None:
        test = Scene(5, 2, PoolingEngine(refuse_at)).start()
        for index in range(refuse_at - 1):
            test.engine.pool(index, 1.0)
        test.engine.confirm_aborts()
        if str(refuse_at - 1) in test.engine.sinks:
            test.engine.sinks.clear()  # aborted before it was known that the call had entered: nobody is told
        with pytest.raises(EngineUnavailable if refuse_at < 2 else EngineLost):
            await test.answer()
        assert test.engine.num_submitted == refuse_at
        assert test.admission.statistics().num_requests == 0
        assert len(test.ends.ended) + len(test.ends.refused) == 1

    run(scene)
