"""What every `Engine` must do, as checks that an adapter's author runs against the adapter.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_engine(check): asyncio.run(run_against_my_engine(check))

A check raises AssertionError when the engine breaks the port's rules (`engine/port.py`).
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tidegate.engine.port import Engine
from tidegate.errors import EngineLost, EngineUnavailable, ServeError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest


class EngineUnderTest(Protocol):
    """One engine, ready, with what the checks need to drive it."""

    @property
    def engine(self) -> Engine: ...

    def make_request(
        self, request_id: str, *, num_choices: int = 1, max_tokens: int = 8, seed: int = 1
    ) -> InferenceRequest:
        """Returns a request that runs until its `max_tokens`, and whose tokens depend on `seed` alone."""
        ...

    async def until(self, condition: Callable[[], bool]) -> None:
        """Lets the engine work until `condition` holds. Raises AssertionError when it never does."""
        ...

    async def lose(self) -> None:
        """Makes the engine vanish without warning."""
        ...


class RecordingSink:
    """A DeltaSink that keeps everything and notices what must not happen."""

    def __init__(self, num_choices: int = 1) -> None:
        self.token_ids: list[list[int]] = [[] for _ in range(num_choices)]
        self.finishes: dict[int, EngineFinish] = {}
        self.error: ServeError | None = None
        self.errors_of_choices: dict[int, str] = {}
        self.num_prompt_tokens = 0
        self.pooled: bytes | None = None
        self.violations: list[str] = []
        self._num_choices = num_choices

    @property
    def has_ended(self) -> bool:
        return self.error is not None or len(self.finishes) == self._num_choices

    @property
    def has_begun(self) -> bool:
        return self.has_ended or any(self.token_ids)

    def deliver(self, delta: TokenDelta) -> None:
        """See `DeltaSink.deliver`."""
        if self.error is not None or delta.choice in self.finishes:
            self.violations.append(f"choice {delta.choice}: a delta after its end")
            return
        if not 0 <= delta.choice < self._num_choices:
            self.violations.append(f"choice {delta.choice} was never asked for")
            return
        self.num_prompt_tokens += delta.num_prompt_tokens
        self.token_ids[delta.choice] += delta.token_ids
        self.pooled = delta.pooled
        if (delta.pooled is None) == (delta.finish is EngineFinish.POOLED):
            self.violations.append("a vector without its finish, or the other way round")
        if delta.error is not None:
            self.errors_of_choices[delta.choice] = delta.error
        if delta.finish is not None:
            self.finishes[delta.choice] = delta.finish

    def fail(self, error: ServeError) -> None:
        """See `DeltaSink.fail`."""
        if self.has_ended:
            self.violations.append("failed after its end")
        self.error = error

    def check(self) -> None:
        """Raises AssertionError when something happened that must not."""
        assert not self.violations, self.violations


async def check_every_choice_ends_once(under_test: EngineUnderTest) -> None:
    """Each choice gets exactly one finishing delta, and nothing after it."""
    sink = RecordingSink(num_choices=3)
    under_test.engine.submit(under_test.make_request("ends", num_choices=3, max_tokens=5), sink)
    await under_test.until(lambda: sink.has_ended)
    later = RecordingSink()
    under_test.engine.submit(under_test.make_request("later"), later)
    await under_test.until(lambda: later.has_ended)
    sink.check()
    assert sink.error is None
    assert set(sink.finishes.values()) == {EngineFinish.LENGTH}, sink.finishes


async def check_token_counts_add_up(under_test: EngineUnderTest) -> None:
    """Deltas together hold `max_tokens` tokens, and name the prompt's length once."""
    request = under_test.make_request("counts", num_choices=2, max_tokens=7)
    sink = RecordingSink(num_choices=2)
    under_test.engine.submit(request, sink)
    await under_test.until(lambda: sink.has_ended)
    sink.check()
    assert [len(ids) for ids in sink.token_ids] == [7, 7]
    assert sink.num_prompt_tokens == request.num_prompt_tokens


async def check_abort_is_idempotent_and_ends(under_test: EngineUnderTest) -> None:
    """An abort, however often, ends in one finishing delta; an abort of nothing is nothing."""
    sink = RecordingSink()
    under_test.engine.abort("nobody")
    under_test.engine.submit(under_test.make_request("aborted", max_tokens=500), sink)
    await under_test.until(lambda: sink.has_begun)
    for _ in range(3):
        under_test.engine.abort("aborted")
    await under_test.until(lambda: sink.has_ended)
    under_test.engine.abort("aborted")
    under_test.engine.hold("aborted", held=True)
    after = RecordingSink()
    under_test.engine.submit(under_test.make_request("after"), after)
    await under_test.until(lambda: after.has_ended)
    sink.check()
    assert sink.finishes == {0: EngineFinish.ABORTED}


async def check_abort_before_start_ends(under_test: EngineUnderTest) -> None:
    """An abort in the same turn as its submit ends the request as well."""
    sink = RecordingSink(num_choices=2)
    under_test.engine.submit(under_test.make_request("early", num_choices=2, max_tokens=500), sink)
    under_test.engine.abort("early")
    await under_test.until(lambda: sink.has_ended)
    sink.check()
    assert set(sink.finishes.values()) == {EngineFinish.ABORTED}


async def check_one_choice_aborts_alone(under_test: EngineUnderTest) -> None:
    """An abort of one choice leaves the others to their end. One that comes too late is no abort: then a longer one."""
    for max_tokens in (30, 120, 480):
        finish = await _finish_of_aborted_choice(under_test, max_tokens)
        if finish is EngineFinish.ABORTED:
            break
    assert finish is EngineFinish.ABORTED


async def _finish_of_aborted_choice(under_test: EngineUnderTest, max_tokens: int) -> EngineFinish:
    name, sink = f"alone of {max_tokens}", RecordingSink(num_choices=2)
    under_test.engine.submit(under_test.make_request(name, num_choices=2, max_tokens=max_tokens), sink)
    await under_test.until(lambda: all(sink.token_ids))
    under_test.engine.abort(name, 1)
    await under_test.until(lambda: sink.has_ended)
    sink.check()
    assert sink.finishes[0] is EngineFinish.LENGTH
    assert len(sink.token_ids[0]) == max_tokens
    return sink.finishes[1]


async def check_held_request_goes_on_when_released(under_test: EngineUnderTest) -> None:
    """A held request loses nothing, and does not hold up others."""
    held, other = RecordingSink(), RecordingSink()
    under_test.engine.submit(under_test.make_request("held", max_tokens=20), held)
    under_test.engine.hold("held", held=True)
    under_test.engine.submit(under_test.make_request("other"), other)
    await under_test.until(lambda: other.has_ended)
    assert not held.has_ended
    under_test.engine.hold("held", held=False)
    await under_test.until(lambda: held.has_ended)
    held.check()
    assert len(held.token_ids[0]) == 20


async def check_same_seed_same_tokens(under_test: EngineUnderTest) -> None:
    """A request's tokens depend on its seed, not on its neighbours."""
    seeds = {"one": 11, "two": 11, "three": 12}
    sinks = {name: RecordingSink() for name in seeds}
    first = RecordingSink()
    under_test.engine.submit(under_test.make_request("first", seed=11), first)
    await under_test.until(lambda: first.has_ended)
    for name, seed in seeds.items():
        under_test.engine.submit(under_test.make_request(name, seed=seed), sinks[name])
    await under_test.until(lambda: all(sink.has_ended for sink in sinks.values()))
    assert first.token_ids == sinks["one"].token_ids == sinks["two"].token_ids


async def check_accounts_return_to_rest(under_test: EngineUnderTest) -> None:
    """When everything has ended, the engine's status says so."""
    sinks = [RecordingSink() for _ in range(4)]
    for i, sink in enumerate(sinks):
        under_test.engine.submit(under_test.make_request(f"rest-{i}", max_tokens=6 + 100 * (i % 2)), sink)
    await under_test.until(lambda: all(sink.has_begun for sink in sinks))
    for i in range(4):
        under_test.engine.abort(f"rest-{i}")

    def is_at_rest() -> bool:
        gauges = under_test.engine.statistics().gauges
        return (gauges.num_waiting, gauges.num_running, gauges.num_held, gauges.blocks_used) == (0, 0, 0, 0)

    await under_test.until(lambda: all(sink.has_ended for sink in sinks) and is_at_rest())


async def check_loss_fails_every_sink_once(under_test: EngineUnderTest) -> None:
    """When the engine vanishes, every open sink fails once, and nothing more is taken."""
    ended = RecordingSink()
    under_test.engine.submit(under_test.make_request("ended"), ended)
    await under_test.until(lambda: ended.has_ended)
    sinks = [RecordingSink() for _ in range(3)]
    for i, sink in enumerate(sinks):
        under_test.engine.submit(under_test.make_request(f"lost-{i}", max_tokens=500), sink)
    await under_test.until(lambda: all(sink.has_begun for sink in sinks))
    await under_test.lose()
    await under_test.until(lambda: all(sink.has_ended for sink in sinks))
    for sink in [ended, *sinks]:
        sink.check()
    assert ended.error is None
    assert all(isinstance(sink.error, EngineLost) for sink in sinks)
    if not under_test.engine.statistics().is_ready:
        assert 1 <= _refused_for_s(under_test) <= 120


def _refused_for_s(under_test: EngineUnderTest) -> int:
    sink = RecordingSink()
    try:
        under_test.engine.submit(under_test.make_request("refused"), sink)
    except EngineUnavailable as error:
        assert not sink.has_begun
        return error.retry_after_s
    raise AssertionError("a request was taken while the engine was not ready")


Check = Callable[[EngineUnderTest], Awaitable[None]]
CHECKS: tuple[Check, ...] = (
    check_every_choice_ends_once,
    check_token_counts_add_up,
    check_abort_is_idempotent_and_ends,
    check_abort_before_start_ends,
    check_one_choice_aborts_alone,
    check_held_request_goes_on_when_released,
    check_same_seed_same_tokens,
    check_accounts_return_to_rest,
    check_loss_fails_every_sink_once,
)
