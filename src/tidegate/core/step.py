"""The engine's core as one object: commands in, steps, outputs out.

Pure except through its backend and chooser; time is an argument. Nothing raises for one request's sake: a request that
cannot run, or a chooser that fails on one row, ends that sequence alone. A BackendError passes through, and then the
process must end.
"""

from tidegate.core.backend import Backend
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chooser
from tidegate.core.grammar_desk import GrammarCounts, GrammarDesk
from tidegate.core.intake import refusal_of
from tidegate.core.plan import StepPlan
from tidegate.core.pooling import NOT_SERVED, PoolingCounts, PoolingDesk
from tidegate.core.pooling_backend import PoolingBackend
from tidegate.core.pooling_batches import Streams
from tidegate.core.scheduler import Scheduler
from tidegate.core.sequence import LiveRequest
from tidegate.core.speculative.draft_filter import AnyDraft, DraftFilter
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import AbortRequest, AddRequest, FlushCache, HoldRequest
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.inference.turn_rule import BY_PRIORITY, TurnRule


class EngineCore:
    """A backend under our scheduler. Not thread-safe: one caller applies commands and steps."""

    def __init__(
        self,
        backend: Backend,
        chooser: Chooser,
        limits: StepLimits | None = None,
        *,
        grammars: GrammarDesk | None = None,
        draft_filter: DraftFilter | None = None,
        pooling: PoolingBackend | None = None,
        turns: TurnRule = BY_PRIORITY,
    ) -> None:
        """`grammars`: where requests' grammars are ordered; None when this engine enforces none. `draft_filter` says
        which guesses are worth their work; None: all. `pooling` reads prompts of requests without generation. `turns`
        says how priorities count.

        Raises ValueError when a step of the backend cannot hold one token of each sequence.
        """
        self._backend = backend
        self._chooser = chooser
        self._grammars = grammars
        self._caps = backend.caps
        self._limits = limits = limits if limits is not None else StepLimits()
        self._scheduler = Scheduler(
            self._caps, chooser, limits, draft_filter if draft_filter is not None else AnyDraft()
        )
        self._turns = turns
        self._pooling = PoolingDesk(pooling, limits.max_prefill_tokens, turns) if pooling is not None else None
        self._next_key = 0
        self._num_arrivals = 0
        self._num_steps = 0
        self._num_step_tokens = 0

    @property
    def model(self) -> ModelInfo:
        """What the engine says about its model; `max_model_len` is what one sequence can really have."""
        caps = self._caps
        return ModelInfo(
            vocab_size=caps.vocab_size,
            max_model_len=self._scheduler.max_len,
            eos_token_ids=caps.eos_token_ids,
            max_sequences=caps.max_sequences,
            num_blocks=caps.num_blocks,
            block_tokens=caps.block_tokens,
            weights_digest=caps.weights_digest,
            build=caps.build,
            grammar_backend=self._grammars.identity if self._grammars is not None else None,
            generates=caps.generates,
            memory=caps.memory,
            pooling=self._pooling.info if self._pooling is not None else None,
            prefill_chunk_tokens=self._limits.max_prefill_tokens,
            has_prefix_cache=self._scheduler.has_prefix_cache,
            max_step_tokens=caps.max_step_tokens,
        )

    @property
    def has_work(self) -> bool:
        """Whether anything lives, or waits to be taken or carried out."""
        return self._scheduler.has_work or (self._pooling is not None and self._pooling.has_work)

    def apply(self, command: AddRequest | AbortRequest | HoldRequest | FlushCache, now: float) -> None:
        """Takes a command between two steps. What it ends comes out of the next `step`.

        Aborts and holds of unknown ids are ignored, and so is a second request under an id that lives.
        """
        match command:
            case AddRequest(request):
                self._add(request, now)
            case AbortRequest(request_id, choice):
                self._abort(request_id, choice)
            case HoldRequest(request_id, held):
                live = self._scheduler.roster.requests.get(request_id)
                if live is not None:
                    self._scheduler.roster.hold(live, held=held)
                elif self._pooling is not None:
                    self._pooling.hold(request_id, held=held)
            case FlushCache():
                self._scheduler.flush_cache()

    def step(self, now: float) -> list[TokenDelta]:
        """Schedules, computes, chooses, commits; or pools one batch of prompts instead, where it is their turn.

        Returns all new outputs. Raises BackendError.
        """
        pooling = self._pooling
        if pooling is None or not pooling.has_work:
            return self._step_streams(now)
        ended = pooling.take_outputs()
        pooled = pooling.step(now, self._streams(now)) if pooling.has_due(now) else []
        if pooled:
            self._num_step_tokens = 0
            return [*ended, *pooled, *self._scheduler.take_outputs()]
        pooling.earn()
        return [*ended, *self._step_streams(now)]

    def _streams(self, now: float) -> Streams:
        if not self._scheduler.roster.requests:
            return Streams.ABSENT
        wake_at = self._scheduler.next_wake_at(now)
        return Streams.DUE if wake_at is not None and wake_at <= now else Streams.IDLE

    def _step_streams(self, now: float) -> list[TokenDelta]:
        step = self._scheduler.schedule(now)
        if step.is_empty:
            self._num_step_tokens = 0
            return self._scheduler.take_outputs()
        logits = self._backend.execute(step.plan)
        scores = [
            self._chooser.score_prompt(score.sequence.key, score.first_row, score.token_ids, logits)
            if score.token_ids
            else []
            for score in step.scores
        ]
        chosen = self._chooser.choose(step.rows, logits) if step.rows else []
        self._count(step.plan)
        return self._scheduler.commit(step, chosen, scores, now)

    def next_wake_at(self, now: float) -> float | None:
        """Returns when to step next: at most `now` for at once, later to sleep, None to wait for a command."""
        wake_at = self._scheduler.next_wake_at(now)
        pooled_at = self._pooling.next_wake_at(now) if self._pooling is not None else None
        if wake_at is None or pooled_at is None:
            return pooled_at if wake_at is None else wake_at
        return min(wake_at, pooled_at)

    def statistics(self) -> EngineGauges:
        """Returns the accounts after the last step. `step_s` is the caller's to measure."""
        roster, blocks = self._scheduler.roster, self._scheduler.statistics()
        drafter = self._scheduler.drafter
        grammars = self._grammars.counts() if self._grammars is not None else GrammarCounts()
        pooling = self._pooling.counts() if self._pooling is not None else PoolingCounts()
        num_held_active = sum(sequence.is_held for sequence in roster.active)
        return EngineGauges(
            num_waiting=len(roster.waiting) + pooling.num_waiting,
            num_running=len(roster.active) - num_held_active,
            num_held=num_held_active + len(roster.parked) + pooling.num_held,
            blocks_free=blocks.num_free,
            blocks_cached=blocks.num_cached,
            blocks_used=blocks.num_used,
            num_steps=self._num_steps,
            num_preemptions=roster.num_preemptions,
            num_prefill_tokens=self._scheduler.num_prefill_tokens,
            num_decode_tokens=self._scheduler.num_decode_tokens,
            num_prompt_tokens=roster.num_prompt_tokens,
            num_cached_tokens=roster.num_cached_tokens,
            num_step_tokens=self._num_step_tokens,
            num_output_tokens=self._scheduler.num_output_tokens,
            num_constrained=roster.num_constrained,
            num_grammar_compiles=grammars.num_compiles,
            num_grammar_hits=grammars.num_hits,
            num_grammar_failures=grammars.num_failures,
            grammar_compile_s=grammars.compile_s,
            num_grammar_masks=grammars.num_masks,
            grammar_mask_s=grammars.mask_s,
            num_drafts=0 if drafter is None else drafter.num_drafts,
            num_draft_tokens=0 if drafter is None else drafter.num_draft_tokens,
            num_accepted_tokens=0 if drafter is None else drafter.num_accepted_tokens,
            num_pooled=pooling.num_inputs,
            num_pooled_tokens=pooling.num_tokens,
            num_pooled_batches=pooling.num_batches,
        )

    def check_integrity(self) -> None:
        """Raises InternalError when a conservation law is broken."""
        self._scheduler.roster.check_integrity()
        if self._pooling is not None:
            self._pooling.check_integrity()

    def _add(self, request: InferenceRequest, now: float) -> None:
        if self._is_live(request.request_id) or request.num_choices < 1:
            return
        error = self._refusal_of(request)
        if error is not None:
            self._scheduler.refuse(request, error)
        elif request.pooling is None:
            self._generate(request, now)
        elif self._pooling is not None:
            self._pooling.add(request, now)

    def _is_live(self, request_id: str) -> bool:
        is_pooled = self._pooling is not None and self._pooling.owns(request_id)
        return is_pooled or request_id in self._scheduler.roster.requests

    def _refusal_of(self, request: InferenceRequest) -> str | None:
        if request.pooling is not None:
            return NOT_SERVED if self._pooling is None else self._pooling.refusal_of(request)
        if not self._caps.generates:
            return "this model generates nothing: it only reads"
        return refusal_of(request, vocab_size=self._caps.vocab_size, max_len=self._scheduler.max_len)

    def _generate(self, request: InferenceRequest, now: float) -> None:
        order = None
        if self._grammars is not None and request.grammar is not None:
            order = self._grammars.order(request.grammar.spec)
        arrival, first_key = self._num_arrivals, self._next_key
        live = LiveRequest(
            request, arrival=arrival, arrived_at=now, first_key=first_key, grammar=order, turns=self._turns
        )
        self._scheduler.add(live)
        self._num_arrivals += 1
        self._next_key += request.num_choices

    def _abort(self, request_id: str, choice: int | None) -> None:
        live = self._scheduler.roster.requests.get(request_id)
        for sequence in live.sequences if live is not None else []:
            if not sequence.is_finished and choice in (None, sequence.choice):
                self._scheduler.end(sequence, EngineFinish.ABORTED)
        if live is None and self._pooling is not None:
            self._pooling.abort(request_id, choice)

    def _count(self, plan: StepPlan) -> None:
        self._num_step_tokens = plan.num_tokens
        self._num_steps += plan.num_tokens > 0
