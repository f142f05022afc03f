"""The sampler: `Chooser` over real logits.

The order, for each row, and why:
1. Raw log-probabilities, of the model's own logits: nothing that follows may show in them.
2. Masks and bias: `allowed_token_ids`, the grammar, then `logit_bias`, `bad_words`, and below `min_tokens` the end and
   stop tokens. A forbidden token is at minus infinity, and no bias lifts it from there.
3. Penalties, on what the masks left: a forbidden token stays at minus infinity.
4. Temperature. Zero means greedy: the largest logit, of equal ones the lowest id, and nothing below happens.
5. Top-k, then top-p of what is left, then min-p: from the bluntest cut to the finest, so that each later one sees
   fewer tokens.
6. The draw, by a random number made from seed, choice and position only.

Rows without masks, bias and penalties are read where they are; others are copied one at a time. `StepLogits` are
never changed. A row is worked on alone, so its result cannot depend on its neighbours to the last bit.

Drafts: a row with draft tokens is worked through place by place, each by its own logits, mask, random number and past,
and ends at the first token that is not the draft of its place. So every token is the one that would have come without
drafts: the draw is made first and compared with the draft, not the other way round.

Rules: with `ignore_eos` an end token is a token like any other and may be chosen below `min_tokens`, except under a
grammar (`core/constraint.py`). A row that holds NaN or plus infinity, or has no token left, ends its sequence with
FAILED, and one that a grammar left without a token with GRAMMAR_DEAD_END; nothing raises. A grammar that is complete
ends its sequence with the last token, below `min_tokens` too: what nothing can follow is not held open.

What this does not know: stop checks, which the scheduler does, and text.
"""

from collections.abc import Sequence

import numpy as np

from tidegate.core.backend import Float32Array, StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.grammar_rows import GrammarRows
from tidegate.core.sampler.draw import pick
from tidegate.core.sampler.logprobs import LOWEST, score
from tidegate.core.sampler.plain_greedy import NOT_FINITE, NOTHING_LEFT, choose_plain_greedy, failed, is_greedy
from tidegate.core.sampler.rows import SequenceState, draw_numbers, open_state
from tidegate.core.sampler.transforms import narrow
from tidegate.core.sampler.weights import Weights, log_total, weigh
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

_FEW = 16
"""Where a grammar left less than one token in so many, the others are not looked at again."""

_NO_GRAMMARS = "this engine enforces no grammars"


class SamplerChain:
    """Chooses tokens by the sampling parameters of CONTRACT.md section 4.

    `vocab_size` is the width of the logits. `eos_token_ids` are the model's end-of-generation tokens. Without
    `grammars`, a request that has one fails.
    """

    def __init__(self, vocab_size: int, eos_token_ids: Sequence[int], grammars: GrammarRows | None = None) -> None:
        self._vocab_size = vocab_size
        self._eos_token_ids = tuple(eos_token_ids)
        self._states: dict[int, SequenceState] = {}
        self._grammars = grammars
        self._edited = np.empty(vocab_size, dtype=np.float32)
        self._scratch = np.empty(vocab_size, dtype=np.float32)

    def open(self, key: int, request: InferenceRequest, choice: int, grammar: GrammarOrder | None = None) -> None:
        """Prepares for one choice. Unusable parameters fail the sequence at its first token, not here."""
        state = self._states[key] = open_state(request, choice, self._vocab_size, self._eos_token_ids)
        if request.grammar is None:
            return
        if self._grammars is None or grammar is None:
            state.fault = state.fault or _NO_GRAMMARS
        elif state.fault is None:
            self._grammars.open(key, request, grammar)
            state.grammars = self._grammars

    def is_ready(self, key: int) -> bool:
        """See `Chooser.is_ready`."""
        return self._grammars is None or self._grammars.is_ready(key)

    def close(self, key: int) -> None:
        """Forgets a sequence. Idempotent."""
        self._states.pop(key, None)
        if self._grammars is not None:
            self._grammars.close(key)

    def choose(self, rows: Sequence[ChooseRow], logits: StepLogits) -> list[Chosen]:
        """Returns one `Chosen` for each row; an end comes behind the tokens before it. Raises KeyError for a key never
        opened.
        """
        if not rows:
            return []
        states = [self._states[row.key] for row in rows]
        if self._grammars:
            self._grammars.fill(rows)
        with np.errstate(all="ignore"):
            plain = choose_plain_greedy(states, rows, logits.values)
            numbers = draw_numbers(states, rows) if len(plain) < len(rows) else ()
            return [
                plain[i] if i in plain else self._choose_run(states[i], row, logits.values, numbers[i])
                for i, row in enumerate(rows)
            ]

    def score_prompt(
        self, key: int, first_row: int, token_ids: Sequence[int], logits: StepLogits
    ) -> list[TokenLogprob]:
        """Scores `token_ids[i]` by row `first_row + i`; a row that is not finite gives -9999.0, no alternatives."""
        num_top = self._states[key].num_prompt_logprobs
        scored = []
        with np.errstate(all="ignore"):
            for i, token_id in enumerate(token_ids):
                raw = logits.values[first_row + i]
                peak = float(raw.max())
                if np.isfinite(peak):
                    weights = weigh(raw, peak, 1.0, self._scratch)
                    scored.append(score(raw, log_total(weights, peak), token_id, num_top))
                else:
                    scored.append(TokenLogprob(token_id, LOWEST))
        return scored

    def _choose_run(
        self, state: SequenceState, row: ChooseRow, values: Float32Array, numbers: Sequence[float]
    ) -> Chosen:
        """Chooses for a row and its drafts, in turn, until one is not as guessed."""
        chosen = self._choose_place(state, row, 0, values[row.row], numbers[0])
        draft_ids = row.draft_ids if state.grammars is None else row.draft_ids[: state.grammars.num_legal(row.key)]
        for place, draft_id in enumerate(draft_ids, start=1):
            if chosen.finish is not None or chosen.token_ids[-1] != draft_id:
                break
            after = self._choose_place(state, row, place, values[row.row + place], numbers[place])
            logprobs = chosen.logprobs if after.logprobs is None else [*(chosen.logprobs or ()), *after.logprobs]
            token_ids = chosen.token_ids + after.token_ids
            chosen = Chosen(token_ids, logprobs, finish=after.finish, error=after.error)
        return chosen

    def _choose_place(
        self, state: SequenceState, row: ChooseRow, place: int, raw: Float32Array, number: float
    ) -> Chosen:
        """Chooses the token behind the first `place` drafts, by one row of logits."""
        if state.fault is not None:
            return failed(state.fault)
        peak = float(raw.max())
        if not np.isfinite(peak):
            return failed(NOT_FINITE if peak != -np.inf else NOTHING_LEFT)
        state.rewind(row.num_generated + place)
        if state.grammars is not None:
            chosen = _end_before(state.grammars, row.key) or _likeliest(state, state.grammars, row, place, raw)
            if chosen is not None:
                return chosen
        known, log_sum = None, 0.0
        if state.num_logprobs is not None:
            known = weigh(raw, peak, 1.0, self._scratch)
            log_sum = log_total(known, peak)
        values = self._edit(state, row, place, raw)
        if values is not raw:
            peak, known = float(values.max()), None
            if not np.isfinite(peak):
                return _without_token(state, peak)
        token_id = self._take(state, values, peak, number, known)
        logprobs = None
        if state.num_logprobs is not None:
            logprobs = [score(raw, log_sum, token_id, state.num_logprobs)]
        return _record(state, row.key, Chosen([token_id], logprobs))

    def _take(
        self, state: SequenceState, values: Float32Array, peak: float, number: float, known: Weights | None
    ) -> int:
        if state.params.temperature == 0.0:
            return int(values.argmax())
        allowed = state.allowed_ids
        if state.grammars is not None:
            left = np.flatnonzero(values != -np.inf)
            allowed = left if left.size * _FEW < values.size else allowed
        if allowed is not None:
            values = values[allowed]
        if state.params.temperature != 1.0:
            known = None
        candidates = narrow(values, peak, state.params, self._scratch, known)
        index = pick(candidates.weights, number)
        if candidates.positions is not None:
            index = int(candidates.positions[index])
        return index if allowed is None else int(allowed[index])

    def _edit(self, state: SequenceState, row: ChooseRow, place: int, raw: Float32Array) -> Float32Array:
        """Returns `raw` itself where nothing changes, or the changed copy, valid until the next call."""
        is_early = row.num_generated + place < state.min_tokens and state.early_ids.size > 0
        if state.is_plain and not is_early:
            return raw
        values = self._edited
        if state.allowed_ids is None:
            np.copyto(values, raw)
        else:
            values.fill(-np.inf)
            values[state.allowed_ids] = raw[state.allowed_ids]
        if state.grammars is not None:
            state.grammars.forbid(row.key, values, place)
        if state.bias_ids.size:
            np.add.at(values, state.bias_ids, state.bias_values.astype(np.float32))
        if state.bad_words is not None:
            values[state.bad_words.forbidden(state.past())] = -np.inf
        if is_early:
            values[state.early_ids] = -np.inf
        if state.seen is not None:
            state.seen.penalise(values, state.params)
        return values


def _record(state: SequenceState, key: int, chosen: Chosen) -> Chosen:
    """Takes note of chosen tokens, and ends a constrained sequence whose text can have no other."""
    for token_id in chosen.token_ids:
        state.record(token_id)
    if state.grammars is None:
        return chosen
    for token_id in chosen.token_ids:
        state.grammars.record(key, token_id)
    fault = state.grammars.fault(key)
    if fault is not None:
        return failed(fault)
    if state.grammars.is_complete(key):
        chosen.finish = EngineFinish.GRAMMAR_COMPLETE
    return chosen


def _end_before(grammars: GrammarRows, key: int) -> Chosen | None:
    """Returns how a constrained sequence ends without a further token, or None."""
    fault = grammars.fault(key)
    if fault is not None:
        return failed(fault)
    return Chosen([], finish=EngineFinish.GRAMMAR_COMPLETE) if grammars.is_complete(key) else None


def _without_token(state: SequenceState, peak: float) -> Chosen:
    if peak != -np.inf:
        return failed(NOT_FINITE)
    if state.grammars is not None:
        return Chosen([], finish=EngineFinish.GRAMMAR_DEAD_END)
    return failed(NOTHING_LEFT)


def _likeliest(
    state: SequenceState, grammars: GrammarRows, row: ChooseRow, place: int, raw: Float32Array
) -> Chosen | None:
    """Returns the model's likeliest token where that is what is wanted and the grammar allows it, without a mask."""
    if not (state.has_plain_fields and is_greedy(state, row.num_generated + place)):
        return None
    best = int(raw.argmax())
    if not (np.isfinite(raw[best]) and grammars.allows(row.key, best, place)):
        return None
    return _record(state, row.key, Chosen([best]))
