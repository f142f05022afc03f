"""Laws of the scheduler under any order of commands, steps and waits."""

from collections.abc import Callable
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.scheduled_step import ScheduledStep
from tidegate.core.sequence import Sequence
from tidegate.core.sequence_status import SequenceStatus
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.inference.script import Script
from tidegate.testing.core_driver import ChoiceRecord, CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

VOCAB_SIZE = 40
CONTEXT = 24

SHAPES = st.builds(
    SimulatedShape,
    vocab_size=st.just(VOCAB_SIZE),
    max_model_len=st.just(CONTEXT),
    max_sequences=st.integers(1, 4),
    max_step_tokens=st.integers(4, 20),
    num_blocks=st.integers(8, 20),
    block_tokens=st.sampled_from([3, 4, 5]),
    can_share=st.booleans(),
    can_truncate=st.booleans(),
    num_seq_ids=st.integers(4, 9),
    has_ordered_ids=st.booleans(),
)
LIMITS = st.builds(
    StepLimits,
    max_prefill_tokens=st.integers(1, 20),
    max_scored_rows=st.integers(1, 20),
    max_draft_tokens=st.integers(0, 5),
)
MODELS = st.sampled_from([SimulatedModel.HISTORY, SimulatedModel.REPEATING])
"""Text of the second soon repeats, so that drafts are accepted."""


BEGINNINGS = ([], list(range(9)), list(range(20)), [*range(9), *range(30, 38)])
"""Requests often begin alike, so that they find each other's tokens in memory."""


@st.composite
def requests(draw: st.DrawFn) -> Callable[[str], InferenceRequest]:
    beginning = draw(st.sampled_from(BEGINNINGS))
    prompt = (beginning + draw(st.lists(st.integers(0, VOCAB_SIZE - 1), min_size=1, max_size=CONTEXT)))[:CONTEXT]
    delays = draw(st.sampled_from([None, (0.0, 2.0), (1.5, 0.0)]))
    fields = {
        "max_tokens": draw(st.integers(0, 9)),
        "sampling": SamplingParams(temperature=draw(st.sampled_from([0.0, 1.0])), seed=draw(st.integers(0, 9))),
        "num_choices": draw(st.sampled_from([1, 1, 1, 2, 3, 6])),
        "num_prompt_logprobs": draw(st.sampled_from([None, None, 0])),
        "first_scored": draw(st.sampled_from([0, 0, 1, 2, len(prompt) - 1, len(prompt)])),
        "num_logprobs": draw(st.sampled_from([None, 0])),
        "priority": draw(st.integers(-1, 1)),
        "cache_salt": draw(st.sampled_from([b"", b"", b"other"])),
        "script": Script((), queue_delay_s=delays[0], prefill_delay_s=delays[1]) if delays else None,
    }
    return lambda request_id: make_request(request_id, prompt, **fields)  # type: ignore[arg-type]


@cache
def _alone(request: InferenceRequest, model: SimulatedModel) -> list[ChoiceRecord]:
    """What a request gets in a large engine of its own, each choice prefilled by itself, nothing guessed."""
    shape = SimulatedShape(vocab_size=VOCAB_SIZE, max_model_len=CONTEXT, can_share=False)
    driver = CoreDriver(SimulatedBackend(model, shape), PlainChooser())
    driver.add(request)
    driver.run()
    return [driver.records[request.request_id, choice] for choice in range(request.num_choices)]


def _assert_same_as_alone(driver: CoreDriver, request: InferenceRequest, model: SimulatedModel) -> None:
    for choice, expected in enumerate(_alone(request, model)):
        record = driver.records[request.request_id, choice]
        if record.finish is EngineFinish.ABORTED:
            length = len(record.token_ids)
            assert record.token_ids == expected.token_ids[:length]
            assert record.logprobs == expected.logprobs[:length]
            assert record.prompt_logprobs == expected.prompt_logprobs[: len(record.prompt_logprobs)]
        else:
            assert record.token_ids == expected.token_ids
            assert record.logprobs == expected.logprobs
            assert record.prompt_logprobs == expected.prompt_logprobs
            assert (record.finish, record.stop_token) == (expected.finish, expected.stop_token)
    announced = [driver.records[request.request_id, choice].num_prompt_tokens for choice in range(request.num_choices)]
    assert sorted(announced) == [*[[]] * (request.num_choices - 1), [request.num_prompt_tokens]]


class _Watch:
    """Looks at each plan while the scheduler's state is the one that it was made in."""

    def __init__(self, driver: CoreDriver) -> None:
        self.scheduler = driver.core._scheduler
        self.preempted: list[Sequence] = []
        self._schedule, self._preempt = self.scheduler.schedule, self.scheduler.roster.preempt
        self._plan_tokens = self.scheduler._plan_tokens
        self.scheduler.schedule = self.schedule  # type: ignore[method-assign]
        self.scheduler._plan_tokens = self.plan_tokens  # type: ignore[method-assign]
        self.scheduler.roster.preempt = self.preempt  # type: ignore[method-assign]

    def preempt(self, sequence: Sequence) -> None:
        self.preempted.append(sequence)
        self._preempt(sequence)

    def schedule(self, now: float) -> ScheduledStep:
        self.preempted.clear()
        active = self.scheduler.roster.active
        running = [(s, s.seq_id) for s in active if s.status is SequenceStatus.RUNNING and s.is_due(now)]
        wake_at = self.scheduler.next_wake_at(now)
        num_waiting = len(self.scheduler.roster.waiting)
        step = self._schedule(now)
        planned = {row.seq_id for row in step.plan.decode} | {part.seq_id for part in step.plan.prefill}
        for sequence, seq_id in running:
            assert seq_id in planned or sequence in self.preempted, "a running sequence was left out"
        if step.plan.num_tokens:
            assert wake_at == now, "there was work, but nobody would have woken the engine"
        elif wake_at == now:
            has_admitted = len(self.scheduler.roster.waiting) < num_waiting
            has_acted = has_admitted or self.preempted  # of what is preempted whole blocks stay, without a move
            assert step.plan.moves or len(self.scheduler._outbox) or has_acted, "woken for nothing"
        return step

    def plan_tokens(self, step: ScheduledStep, now: float) -> None:
        assert not self.scheduler._entrance.can_admit(now), "somebody who fits was left waiting"
        self._plan_tokens(step, now)


class SchedulerMachine(RuleBasedStateMachine):
    """Every command in any order; at the end all comes to rest and every choice had what it gets alone."""

    ids = Bundle("ids")

    @initialize(shape=SHAPES, limits=LIMITS, model=MODELS)
    def start(self, shape: SimulatedShape, limits: StepLimits, model: SimulatedModel) -> None:
        self.chooser = PlainChooser()
        self.model = model
        self.driver = CoreDriver(SimulatedBackend(model, shape), self.chooser, limits=limits)
        _Watch(self.driver)
        self.requests: dict[str, InferenceRequest] = {}

    @rule(target=ids, make=requests())
    def add(self, make: Callable[[str], InferenceRequest]) -> str:
        request_id = f"r{len(self.requests)}"
        self.requests[request_id] = make(request_id)
        self.driver.add(self.requests[request_id])
        return request_id

    @rule(request_id=ids, choice=st.sampled_from([None, None, 0, 1, 2]))
    def abort(self, request_id: str, choice: int | None) -> None:
        self.driver.abort(request_id, choice)

    @rule(request_id=ids, held=st.booleans())
    def hold(self, request_id: str, held: bool) -> None:
        self.driver.hold(request_id, held=held)

    @rule(count=st.integers(1, 4))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.driver.step()

    @rule(wait=st.sampled_from([0.5, 1.0, 3.0]))
    def wait(self, wait: float) -> None:
        self.driver.clock.advance(wait)

    @rule()
    def wait_for_work(self) -> None:
        wake_at = self.driver.core.next_wake_at(self.driver.clock.now())
        if wake_at is not None:
            self.driver.clock.advance_to(wake_at)
            self.driver.step()

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        for request_id in self.requests:
            self.driver.hold(request_id, held=False)
        self.driver.run()
        self.driver.assert_at_rest()
        assert not self.chooser.open_keys
        self.driver.flush()
        assert self.driver.backend._inner.cache.num_used_cells == 0  # type: ignore[attr-defined]
        for request in self.requests.values():
            _assert_same_as_alone(self.driver, request, self.model)


SchedulerMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestSchedulerMachine = SchedulerMachine.TestCase


@given(
    shape=SHAPES,
    limits=LIMITS,
    model=MODELS,
    makers=st.lists(requests(), min_size=1, max_size=5),
    steps_between=st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
@settings(max_examples=50, deadline=None)
def test_tokens_do_not_depend_on_pool_chunks_or_neighbours(
    shape: SimulatedShape,
    limits: StepLimits,
    model: SimulatedModel,
    makers: list[Callable[[str], InferenceRequest]],
    steps_between: list[int],
) -> None:
    driver = CoreDriver(SimulatedBackend(model, shape), PlainChooser(), limits=limits)
    _Watch(driver)
    added = [make(f"r{index}") for index, make in enumerate(makers)]
    for request, num_steps in zip(added, steps_between, strict=False):
        driver.add(request)
        for _ in range(num_steps):
            driver.step()
    driver.run()
    driver.assert_at_rest()
    for request in added:
        _assert_same_as_alone(driver, request, model)
