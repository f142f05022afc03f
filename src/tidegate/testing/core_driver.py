"""Drives an `EngineCore` step by step on a manual clock, and holds it to its laws at every step.

After each step: memory is conserved, every due sequence with all its tokens computed was in the plan, no choice says
anything after its end. `run` ends only when the engine waits for commands, and counts steps so that nothing spins.
"""

from dataclasses import dataclass, field

from tidegate.core.backend import Backend, BackendCaps, StepLogits
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chooser
from tidegate.core.grammar_desk import GrammarDesk
from tidegate.core.plan import KvShare, StepPlan
from tidegate.core.pooling_backend import PoolingBackend
from tidegate.core.sequence import Sequence
from tidegate.core.speculative.draft_filter import DraftFilter
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AbortRequest, AddRequest, FlushCache, HoldRequest
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.testing.manual_clock import ManualClock


@dataclass(slots=True)
class ChoiceRecord:
    """All that came out for one choice. `num_deltas` counts them."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprob | None] = field(default_factory=list)
    num_prompt_tokens: list[int] = field(default_factory=list)
    num_cached_tokens: int = 0
    num_deltas: int = 0
    finish: EngineFinish | None = None
    stop_token: int | None = None
    error: str | None = None
    pooled: bytes | None = None
    queue_s: float = 0.0


class RecordingBackend:
    """Passes everything on and keeps the plans."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self.plans: list[StepPlan] = []

    @property
    def caps(self) -> BackendCaps:
        return self._inner.caps

    def execute(self, plan: StepPlan) -> StepLogits:
        caps = self._inner.caps
        assert plan.num_tokens <= caps.max_step_tokens, "more tokens than a step may hold"
        assert len(plan.decode) + len(plan.prefill) <= caps.max_sequences, "more rows than sequences"
        self.plans.append(plan)
        return self._inner.execute(plan)

    def close(self) -> None:
        self._inner.close()


class CoreDriver:
    """One core, its clock, and everything that came out of it, by request id and choice."""

    def __init__(
        self,
        backend: Backend,
        chooser: Chooser,
        *,
        limits: StepLimits | None = None,
        clock: ManualClock | None = None,
        grammars: GrammarDesk | None = None,
        draft_filter: DraftFilter | None = None,
        pooling: PoolingBackend | None = None,
    ) -> None:
        self.backend = RecordingBackend(backend)
        self.core = EngineCore(
            self.backend, chooser, limits, grammars=grammars, draft_filter=draft_filter, pooling=pooling
        )
        self.clock = clock if clock is not None else ManualClock()
        self.records: dict[tuple[str, int], ChoiceRecord] = {}

    def add(self, *requests: InferenceRequest) -> None:
        for request in requests:
            for choice in range(request.num_choices):
                self.records.setdefault((request.request_id, choice), ChoiceRecord())
            self.core.apply(AddRequest(request), self.clock.now())

    def abort(self, request_id: str, choice: int | None = None) -> None:
        self.core.apply(AbortRequest(request_id, choice), self.clock.now())

    def hold(self, request_id: str, *, held: bool) -> None:
        self.core.apply(HoldRequest(request_id, held), self.clock.now())

    def drop_cached(self) -> None:
        """Drops what is only cached; the next step carries it out."""
        self.core.apply(FlushCache(0), self.clock.now())

    def flush(self) -> None:
        """Drops what is only cached, and runs."""
        self.drop_cached()
        self.run()

    @property
    def live_ids(self) -> tuple[str, ...]:
        """Requests that have not ended."""
        return tuple(self.core._scheduler.roster.requests)

    @property
    def active(self) -> tuple[Sequence, ...]:
        """Sequences with memory."""
        return tuple(self.core._scheduler.roster.active)

    @property
    def ids_to_share(self) -> frozenset[int]:
        """Sequence ids that get what they hold with the next step's moves."""
        return frozenset(move.dst for move in self.core._scheduler._kv._moves if isinstance(move, KvShare))

    def step(self) -> list[TokenDelta]:
        """One step at the present instant."""
        deltas = self.core.step(self.clock.now())
        for delta in deltas:
            self._record(delta)
        self.core.check_integrity()
        return deltas

    def run(self, *, max_steps: int = 2000) -> None:
        """Steps, and moves the clock to each wake, until the engine waits for commands."""
        for _ in range(max_steps):
            wake_at = self.core.next_wake_at(self.clock.now())
            if wake_at is None:
                return
            has_waited = wake_at > self.clock.now()
            self.clock.advance_to(wake_at)
            before = (len(self.backend.plans), self.core.statistics().num_waiting)
            outputs = self.step()
            after = (len(self.backend.plans), self.core.statistics().num_waiting)
            # A sequence whose time comes may still find no room: one look for nothing, never two at one instant.
            assert outputs or after != before or has_waited, "woken for nothing"
        raise AssertionError(f"still busy after {max_steps} steps")

    def assert_at_rest(self) -> None:
        """Every added choice has ended, and nothing is held, waiting or in use."""
        unfinished = [key for key, record in self.records.items() if record.finish is None]
        assert not unfinished, f"never finished: {unfinished}"
        gauges = self.core.statistics()
        assert (gauges.num_waiting, gauges.num_running, gauges.num_held, gauges.blocks_used) == (0, 0, 0, 0), gauges
        assert gauges.blocks_free + gauges.blocks_cached == self.backend.caps.num_blocks
        assert gauges.num_constrained == 0, gauges
        assert not self.core.has_work

    def _record(self, delta: TokenDelta) -> None:
        record = self.records[delta.request_id, delta.choice]
        assert record.finish is None, f"{delta.request_id}/{delta.choice} goes on after its end"
        says_something = delta.token_ids or delta.prompt_logprobs or delta.finish is not None
        assert says_something, "a delta without information"
        assert not (delta.prompt_logprobs and record.token_ids), "prompt logprobs after the first token"
        record.num_deltas += 1
        record.token_ids += delta.token_ids
        record.logprobs += delta.logprobs or []
        record.prompt_logprobs += delta.prompt_logprobs or []
        record.num_cached_tokens += delta.num_cached_tokens
        record.finish, record.stop_token, record.error = delta.finish, delta.stop_token, delta.error
        assert (delta.pooled is not None) == (delta.finish is EngineFinish.POOLED), "a vector without its finish"
        record.pooled, record.queue_s = delta.pooled, record.queue_s + delta.queue_s
        if delta.num_prompt_tokens:
            record.num_prompt_tokens.append(delta.num_prompt_tokens)
