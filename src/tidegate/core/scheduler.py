"""What each step computes.

Decides, in this order:
1. Every running sequence that is due gets blocks for its newest tokens. When blocks lack, the worst sequence loses its
   memory: held ones first, then the last in order, which may be the needy one itself. So the first in order always
   moves, and a sequence alone always fits.
2. Waiting sequences are admitted, strictly in order (`core/entrance.py`).
3. Decode rows come first, then sequences with several new tokens, then prefills, which share what is left. Drafts get
   what nobody else wants (`core/speculative/drafter.py`); those that are not accepted leave the cache again.
4. When the prompt of a request with several choices is in the cache, its other choices share it, and all of them draw
   from the same row of logits. Those that find no row wait, and later share the prompt of a sibling that still runs.

What sequences have computed is made known after each step, for others to begin with. A preempted sequence computes its
prompt and its generated tokens again, as far as they are no longer in memory; its chooser's state is untouched, so
nothing is chosen twice. A step may come out empty: `next_wake_at` says when to look again.

Does not know text, sockets, clocks, or what a forward pass is.
Known weakness: a very long first prompt still takes half of every step from the prompts behind it.
"""

from collections.abc import Sequence as Rows

from tidegate.core.backend import BackendCaps
from tidegate.core.budget import StepBudget, StepLimits, share_tokens
from tidegate.core.chooser import Chooser, ChooseRow, Chosen
from tidegate.core.entrance import Entrance
from tidegate.core.kv.block_pool import BlockCounts
from tidegate.core.kv.manager import KvManager, KvShape, KvSource
from tidegate.core.outbox import Outbox
from tidegate.core.plan import DecodeRow, PrefillSlice
from tidegate.core.roster import Roster
from tidegate.core.scheduled_step import ScheduledStep, ScoreRows
from tidegate.core.sequence import LiveRequest, Sequence
from tidegate.core.sequence_status import SequenceEvent, SequenceStatus
from tidegate.core.speculative.draft_filter import DraftFilter
from tidegate.core.speculative.drafter import Drafter, Wish
from tidegate.core.stop_check import StopCheck
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest


class Scheduler:
    """Owns the live sequences, their memory, and the outputs that wait to be taken."""

    def __init__(self, caps: BackendCaps, chooser: Chooser, limits: StepLimits, draft_filter: DraftFilter) -> None:
        if caps.max_step_tokens < caps.max_sequences:
            raise ValueError(
                f"max_step_tokens is {caps.max_step_tokens}, less than max_sequences ({caps.max_sequences}): "
                "a step could not hold one token for each"
            )
        if min(limits.max_prefill_tokens, limits.max_scored_rows) < 1:
            raise ValueError(f"step limits must be at least 1: {limits}")
        self._caps = caps
        self._limits = limits
        self._max_len = min(caps.max_model_len, caps.num_blocks * caps.block_tokens)
        self._stop_check = StopCheck(frozenset(caps.eos_token_ids), self._max_len)
        # Keeping and taking up again needs both; a cache that can only be shared whole, or cut, is not used.
        self.has_prefix_cache = limits.has_prefix_cache and caps.can_share and caps.can_truncate
        self._kv = KvManager(_kv_shape(caps, has_cache=self.has_prefix_cache))
        self.drafter: Drafter | None = None
        if limits.max_draft_tokens and caps.can_truncate:
            self.drafter = Drafter(limits.max_draft_tokens, self._kv, draft_filter)
        self._outbox = Outbox()
        self._chooser = chooser
        self.roster = Roster(self._kv, chooser)
        self._entrance = Entrance(self.roster, self._kv, can_share=caps.can_share, has_cache=self.has_prefix_cache)
        self.num_prefill_tokens = 0
        self.num_decode_tokens = 0
        self.num_output_tokens = 0

    @property
    def max_len(self) -> int:
        """Longest sequence, prompt and output together: the model's, or all blocks if those are fewer."""
        return self._max_len

    @property
    def has_work(self) -> bool:
        return bool(self.roster.requests or self._outbox) or self._kv.has_moves

    def add(self, live: LiveRequest) -> None:
        self.roster.enter(live)

    def refuse(self, request: InferenceRequest, error: str) -> None:
        """Ends every choice of a request that cannot run; the next `take_outputs` has the deltas."""
        self._outbox.refuse(request, error)

    def end(self, sequence: Sequence, finish: EngineFinish, *, error: str | None = None) -> None:
        """Ends a live sequence between steps; its memory is free at once."""
        self._end(sequence, finish, error=error)

    def flush_cache(self) -> None:
        """Drops the blocks that are kept for reuse and held by no sequence."""
        self._kv.drop_cached()

    def take_outputs(self) -> list[TokenDelta]:
        return self._outbox.take()

    def statistics(self) -> BlockCounts:
        return self._kv.statistics()

    def next_wake_at(self, now: float) -> float | None:
        """Returns when a step has something to do: `now`, a later instant, or None for not before a command."""
        if self._outbox or self._kv.has_moves or self.roster.has_new_grammar:
            return now
        wakes = [max(now, sequence.not_before) for sequence in self.roster.active if not sequence.is_held]
        if min(wakes, default=None) == now or self._entrance.can_admit(now):
            return now
        next_due_at = self.roster.waiting.next_due_at(now)
        if next_due_at is not None:
            wakes.append(next_due_at)
        return min(wakes, default=None)

    def schedule(self, now: float) -> ScheduledStep:
        """Plans one step at instant `now`. Its memory is taken; carry it out and `commit` it before the next."""
        step = ScheduledStep()
        self.roster.take_grammars()
        self._grow_running(now)
        self._entrance.admit_waiting(now)
        self._plan_tokens(step, now)
        step.plan.moves = self._kv.take_moves()
        for sequence in list(step.prefilled):
            self._fork(step, sequence, now)
        return step

    def commit(
        self, step: ScheduledStep, chosen: list[Chosen], scores: list[list[TokenLogprob]], now: float
    ) -> list[TokenDelta]:
        """Records what a step brought, and returns all outputs that wait. `chosen` and `scores` follow the step's."""
        for sequence in step.prefilled:
            sequence.apply(SequenceEvent.PREFILL)
        for score, entries in zip(step.scores, scores, strict=True):
            self._give_scores(score.sequence, entries)
        for sequence, row, choice in zip(step.due, step.rows, chosen, strict=True):
            self._take_tokens(sequence, row.draft_ids, choice, now)
        for sequence in step.spent:
            self._end(sequence, EngineFinish.LENGTH)
        if self.has_prefix_cache:
            self.roster.note_computed()
        self._await_grammars()
        return self._outbox.take()

    def _await_grammars(self) -> None:
        """Holds the sequences that lack only their last token's logits, and could not choose by them yet."""
        for sequence in self.roster.active:
            if not sequence.awaits_grammar and self._num_feedable(sequence) == 0:
                self.roster.await_grammar(sequence)

    def _num_feedable(self, sequence: Sequence) -> int:
        """Returns how many of its pending tokens a step may feed: the last one only when a token can be chosen."""
        num_pending = sequence.num_pending
        if not sequence.has_grammar_on_its_way or self._chooser.is_ready(sequence.key):
            return num_pending
        return num_pending - 1 if self._max_generated(sequence) else num_pending

    # Memory

    def _grow_running(self, now: float) -> None:
        for sequence in list(self.roster.active):
            if sequence.status is not SequenceStatus.RUNNING or not sequence.is_due(now):
                continue
            while sequence.seq_id is not None and not self._kv.grow(sequence.key, sequence.num_tokens):
                self.roster.preempt(max(self.roster.active, key=lambda other: (other.is_held, other.order)))

    # Tokens

    def _plan_tokens(self, step: ScheduledStep, now: float) -> None:
        self._await_grammars()
        budget = StepBudget(self._caps.max_sequences, self._caps.max_step_tokens, self._limits.max_scored_rows)
        due = [sequence for sequence in self.roster.active if sequence.is_due(now)]
        running = [sequence for sequence in due if sequence.status is SequenceStatus.RUNNING]
        single = [sequence for sequence in running if sequence.num_pending == 1]
        for _ in single:
            budget.take(1)
        slices = self._share_slices(budget, due, running)
        drafts = self._draft(budget, single, len(running)) if self.drafter is not None else {}
        for sequence in single:
            self._feed_row(step, sequence, drafts.get(sequence.key, []))
        for sequence, num_tokens in slices:
            self._feed_slice(step, sequence, num_tokens)

    def _share_slices(
        self, budget: StepBudget, due: list[Sequence], running: list[Sequence]
    ) -> list[tuple[Sequence, int]]:
        """Returns who feeds several tokens, and how many; takes them from the budget."""
        slices: list[tuple[Sequence, int]] = []
        several = [sequence for sequence in running if sequence.num_pending > 1]
        for index, sequence in enumerate(several):
            num_behind = len(several) - index - 1
            slices.append((sequence, min(self._num_feedable(sequence), budget.num_tokens - num_behind)))
            budget.take(slices[-1][1])
        num_tokens = min(budget.num_tokens, self._limits.max_prefill_tokens) if running else budget.num_tokens
        prefilling = [sequence for sequence in due if sequence.status is SequenceStatus.PREFILLING]
        shares = share_tokens([self._num_feedable(sequence) for sequence in prefilling], num_tokens)
        for sequence, share in zip(prefilling, shares, strict=True):
            if sequence.is_scoring:
                share = min(share, _num_unscored(sequence, share) + budget.num_scored_rows)
            if share:
                slices.append((sequence, share))
                budget.take(share, num_scored_rows=_num_score_rows(sequence, share))
        return slices

    def _draft(self, budget: StepBudget, single: list[Sequence], num_running: int) -> dict[int, list[int]]:
        """Returns draft tokens by key, out of what the planned step leaves of tokens, rows of logits and blocks."""
        assert self.drafter is not None
        num_tokens = budget.num_tokens
        if self._caps.max_pass_rows is not None:
            num_rows = self._caps.max_sequences - budget.num_rows
            num_scored = self._limits.max_scored_rows - budget.num_scored_rows
            num_tokens = min(num_tokens, self._caps.max_pass_rows - num_rows - num_scored)
        wishes = [Wish(s, self._max_generated(s) - len(s.generated) - 1) for s in single]
        return self.drafter.draft(wishes, num_tokens, num_running)

    def _feed_row(self, step: ScheduledStep, sequence: Sequence, draft_ids: list[int]) -> None:
        position = sequence.num_computed
        row = DecodeRow(_id_of(sequence), position, sequence.token_at(position), draft_ids)
        step.plan.decode.append(row)
        sequence.num_computed += row.num_tokens
        self.num_decode_tokens += 1
        self._expect(step, sequence, step.num_logit_rows, draft_ids)
        step.num_logit_rows += row.num_tokens

    def _feed_slice(self, step: ScheduledStep, sequence: Sequence, num_tokens: int) -> None:
        start, end = sequence.num_computed, sequence.num_computed + num_tokens
        is_last = end == sequence.num_tokens
        num_score_rows = _num_score_rows(sequence, num_tokens)
        is_spent = is_last and self._max_generated(sequence) == 0
        wants_last = is_last and not is_spent
        token_ids = sequence.tokens_between(start, end)
        num_unwanted = num_tokens - num_score_rows if num_score_rows else 0
        step.plan.prefill.append(
            PrefillSlice(_id_of(sequence), start, token_ids, wants_last, num_score_rows > 0, num_unwanted)
        )
        sequence.num_computed = end
        self.num_prefill_tokens += num_tokens
        first_row = step.num_logit_rows
        step.num_logit_rows += num_score_rows or int(wants_last)
        if num_score_rows:
            self._expect_scores(step, sequence, start=start + num_unwanted, end=end, first_row=first_row)
        if is_last and sequence.status is SequenceStatus.PREFILLING:
            step.prefilled.append(sequence)
        if is_spent:
            step.spent.append(sequence)
        elif is_last:
            self._expect(step, sequence, step.num_logit_rows - 1)

    def _expect(self, step: ScheduledStep, sequence: Sequence, row: int, draft_ids: Rows[int] = ()) -> None:
        step.rows.append(ChooseRow(sequence.key, row, len(sequence.generated), draft_ids))
        step.due.append(sequence)

    def _expect_scores(self, step: ScheduledStep, sequence: Sequence, *, start: int, end: int, first_row: int) -> None:
        """The row of position p scores token p + 1. An entry for position 0 stands for the token that has no row."""
        first = max(start + 1, sequence.live.num_scored)
        token_ids = list(sequence.live.prompt[first : end + 1])
        if token_ids or sequence.live.num_scored == 0:
            step.scores.append(ScoreRows(sequence, first_row + first - 1 - start, token_ids))

    def _fork(self, step: ScheduledStep, leader: Sequence, now: float) -> None:
        """Lets siblings that never started join `leader`, whose prompt this step completes."""
        if leader.generated:
            return
        is_spent = self._max_generated(leader) == 0
        num_prompt = leader.num_prompt
        row = step.num_logit_rows if is_spent else next(r.row for r in step.rows if r.key == leader.key)
        for sequence in leader.live.sequences:
            if sequence.status is not SequenceStatus.WAITING or not sequence.is_due(now):
                continue
            if is_spent:
                if sequence not in step.spent:
                    step.spent.append(sequence)
            elif self._caps.can_share and self._kv.fits(num_prompt, source := KvSource(_id_of(leader), num_prompt)):
                self.roster.admit(sequence, now, source=source)
                step.prefilled.append(sequence)
                self._expect(step, sequence, row)

    # Results

    def _give_scores(self, sequence: Sequence, scores: list[TokenLogprob]) -> None:
        entries: list[TokenLogprob | None] = [*scores]
        if sequence.live.num_scored == 0:
            entries.insert(0, None)
        sequence.live.num_scored += len(entries)
        self._outbox.add_prompt_logprobs(sequence, entries)

    def _take_tokens(self, sequence: Sequence, draft_ids: Rows[int], chosen: Chosen, now: float) -> None:
        verdict = self._stop_check.judge(
            sequence.live.request.stop,
            chosen.token_ids,
            num_prompt=sequence.num_prompt,
            num_generated=len(sequence.generated),
        )
        token_ids, num_held = chosen.token_ids[: verdict.num_kept], sequence.num_computed
        if token_ids:
            sequence.generated += token_ids
            self.num_output_tokens += len(token_ids)
            logprobs = None if chosen.logprobs is None else chosen.logprobs[: verdict.num_kept]
            self._outbox.add_tokens(sequence, token_ids, logprobs)
        if draft_ids:
            sequence.num_computed -= len(draft_ids) - self._settle_drafts(sequence, draft_ids, token_ids)
        is_complete = chosen.finish is EngineFinish.GRAMMAR_COMPLETE and verdict.num_kept == len(chosen.token_ids)
        if verdict.finish is EngineFinish.LENGTH and is_complete:
            # Nothing could have followed, so nothing was cut off.
            self._end(sequence, EngineFinish.GRAMMAR_COMPLETE)
        elif verdict.finish is not None:
            self._end(sequence, verdict.finish, stop_token=verdict.stop_token)
        elif chosen.finish is not None:
            self._end(sequence, chosen.finish, error=chosen.error)
        else:
            sequence.not_before = now + chosen.resume_after_s
            sequence.num_computed -= not token_ids
            self._rewind(sequence, num_held)

    def _settle_drafts(self, sequence: Sequence, draft_ids: Rows[int], token_ids: list[int]) -> int:
        """Returns how many drafts are in the text now, not counting its last token: that one is fed again."""
        assert self.drafter is not None
        num_right = 0
        for draft_id, token_id in zip(draft_ids, token_ids, strict=False):
            if draft_id != token_id:
                break
            num_right += 1
        self.drafter.note(sequence, len(draft_ids), num_right)
        return min(num_right, max(0, len(token_ids) - 1))

    def _rewind(self, sequence: Sequence, num_held: int) -> None:
        """Takes what is too much of `num_held` tokens out of the cache: drafts that were wrong, and the token of a
        sequence that chose nothing, so that its logits can be had again.
        """
        if num_held == sequence.num_computed:
            return
        if self._caps.can_truncate:
            self._kv.truncate(sequence.key, sequence.num_computed)
        else:
            self.roster.preempt(sequence)

    def _end(
        self, sequence: Sequence, finish: EngineFinish, *, stop_token: int | None = None, error: str | None = None
    ) -> None:
        self._outbox.finish(sequence, finish, stop_token=stop_token, error=error)
        self.roster.finish(sequence, finish)

    def _max_generated(self, sequence: Sequence) -> int:
        return self._stop_check.max_generated(sequence.live.request.stop, num_prompt=sequence.num_prompt)


def _kv_shape(caps: BackendCaps, *, has_cache: bool) -> KvShape:
    return KvShape(
        num_blocks=caps.num_blocks,
        block_tokens=caps.block_tokens,
        max_sequences=caps.max_sequences,
        num_seq_ids=caps.num_seq_ids or caps.max_sequences,
        has_cache=has_cache,
        is_ordered=caps.has_ordered_ids,
    )


def _num_unscored(sequence: Sequence, num_tokens: int) -> int:
    """Returns how many of the next `num_tokens` stand before the one whose logits score the next prompt token."""
    return min(num_tokens, max(0, sequence.live.num_scored - 1 - sequence.num_computed))


def _num_score_rows(sequence: Sequence, num_tokens: int) -> int:
    """Returns how many of the next `num_tokens` of a prefill, the last ones, owe prompt logprobs."""
    return num_tokens - _num_unscored(sequence, num_tokens) if sequence.is_scoring else 0


def _id_of(sequence: Sequence) -> int:
    assert sequence.seq_id is not None
    return sequence.seq_id
