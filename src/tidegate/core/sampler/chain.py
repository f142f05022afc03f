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
from tidegate.core.sampler.rows import SequenceState, draw_numbers, open_state
from tidegate.core.sampler.transforms import narrow
from tidegate.core.sampler.weights import Weights, log_total, weigh
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

_NOT_FINITE = "the model's logits are not finite"
_FEW = 16
"""Where a grammar left less than one token in so many, the others are not looked at again."""

_NO_GRAMMARS = "this engine enforces no grammars"
_NOTHING_LEFT = "no token may be sampled: allowed_token_ids, bad_words and min_tokens together forbid all of them"


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
        """Returns one `Chosen` for each row: one token, or none and the end. Raises KeyError for a key never opened."""
        if not rows:
            return []
        states = [self._states[row.key] for row in rows]
        if self._grammars:
            self._grammars.fill(rows)
        with np.errstate(all="ignore"):
            plain = _choose_plain_greedy(states, rows, logits.values)
            numbers = draw_numbers(states, rows) if len(plain) < len(rows) else ()
            return [
                plain[i] if i in plain else self._choose_row(states[i], row, logits.values[row.row], numbers[i])
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

    def _choose_row(self, state: SequenceState, row: ChooseRow, raw: Float32Array, number: float) -> Chosen:
        if state.fault is not None:
            return _failed(state.fault)
        peak = float(raw.max())
        if not np.isfinite(peak):
            return _failed(_NOT_FINITE if peak != -np.inf else _NOTHING_LEFT)
        state.rewind(row.num_generated)
        if state.grammars is not None:
            chosen = _end_before(state.grammars, row.key) or _likeliest(state, state.grammars, row, raw)
            if chosen is not None:
                return chosen
        known, log_sum = None, 0.0
        if state.num_logprobs is not None:
            known = weigh(raw, peak, 1.0, self._scratch)
            log_sum = log_total(known, peak)
        values = self._edit(state, row, raw)
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

    def _edit(self, state: SequenceState, row: ChooseRow, raw: Float32Array) -> Float32Array:
        """Returns `raw` itself where nothing changes, or the changed copy, valid until the next call."""
        is_early = row.num_generated < state.min_tokens and state.early_ids.size > 0
        if state.is_plain and not is_early:
            return raw
        values = self._edited
        if state.allowed_ids is None:
            np.copyto(values, raw)
        else:
            values.fill(-np.inf)
            values[state.allowed_ids] = raw[state.allowed_ids]
        if state.grammars is not None:
            state.grammars.forbid(row.key, values)
        if state.bias_ids.size:
            np.add.at(values, state.bias_ids, state.bias_values.astype(np.float32))
        if state.bad_words is not None:
            values[state.bad_words.forbidden(state.past())] = -np.inf
        if is_early:
            values[state.early_ids] = -np.inf
        if state.seen is not None:
            state.seen.penalise(values, state.params)
        return values


def _choose_plain_greedy(
    states: Sequence[SequenceState], rows: Sequence[ChooseRow], values: Float32Array
) -> dict[int, Chosen]:
    """Returns the greedy choices, by index into `rows`, that read the logits as they are and return nothing else."""
    found = [i for i, state in enumerate(states) if _is_plain_greedy(state, rows[i])]
    if not found:
        return {}
    indices = [rows[i].row for i in found]
    if indices == list(range(indices[0], indices[0] + len(indices))):
        best = values[indices[0] : indices[0] + len(indices)].argmax(axis=1)
    else:
        best = np.array([values[index].argmax() for index in indices])
    peaks = values[indices, best]
    finite = np.isfinite(peaks)
    return {
        i: Chosen([token_id]) if is_right else _failed(_NOT_FINITE if peak != -np.inf else _NOTHING_LEFT)
        for i, token_id, is_right, peak in zip(found, best.tolist(), finite.tolist(), peaks.tolist(), strict=True)
    }


def _is_plain_greedy(state: SequenceState, row: ChooseRow) -> bool:
    return state.is_plain and _is_greedy(state, row)


def _is_greedy(state: SequenceState, row: ChooseRow) -> bool:
    """Whether the likeliest token that may come is chosen, and nothing else is asked for."""
    return (
        state.params.temperature == 0.0
        and state.num_logprobs is None
        and state.fault is None
        and (row.num_generated >= state.min_tokens or state.early_ids.size == 0)
    )


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
        return _failed(fault)
    if state.grammars.is_complete(key):
        chosen.finish = EngineFinish.GRAMMAR_COMPLETE
    return chosen


def _end_before(grammars: GrammarRows, key: int) -> Chosen | None:
    """Returns how a constrained sequence ends without a further token, or None."""
    fault = grammars.fault(key)
    if fault is not None:
        return _failed(fault)
    return Chosen([], finish=EngineFinish.GRAMMAR_COMPLETE) if grammars.is_complete(key) else None


def _without_token(state: SequenceState, peak: float) -> Chosen:
    if peak != -np.inf:
        return _failed(_NOT_FINITE)
    if state.grammars is not None:
        return Chosen([], finish=EngineFinish.GRAMMAR_DEAD_END)
    return _failed(_NOTHING_LEFT)


def _likeliest(state: SequenceState, grammars: GrammarRows, row: ChooseRow, raw: Float32Array) -> Chosen | None:
    """Returns the model's likeliest token where that is what is wanted and the grammar allows it, without a mask."""
    if not (state.has_plain_fields and _is_greedy(state, row)):
        return None
    best = int(raw.argmax())
    if not (np.isfinite(raw[best]) and grammars.allows(row.key, best)):
        return None
    return _record(state, row.key, Chosen([best]))


def _failed(message: str) -> Chosen:
    return Chosen([], finish=EngineFinish.FAILED, error=message)
