"""The short cut for rows that want the largest logit and nothing else: one argmax for all of them, drafts included."""

from collections.abc import Sequence

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.sampler.rows import SequenceState
from tidegate.inference.finish import EngineFinish

NOT_FINITE = "the model's logits are not finite"
NOTHING_LEFT = "no token may be sampled: allowed_token_ids, bad_words and min_tokens together forbid all of them"


def choose_plain_greedy(
    states: Sequence[SequenceState], rows: Sequence[ChooseRow], values: Float32Array
) -> dict[int, Chosen]:
    """Returns the greedy choices, by index into `rows`, that read the logits as they are and return nothing else."""
    found = [i for i, state in enumerate(states) if state.is_plain and is_greedy(state, rows[i].num_generated)]
    if not found:
        return {}
    indices = [rows[i].row + place for i in found for place in range(1 + len(rows[i].draft_ids))]
    if indices == list(range(indices[0], indices[0] + len(indices))):
        best = values[indices[0] : indices[0] + len(indices)].argmax(axis=1)
    else:
        best = np.array([values[index].argmax() for index in indices])
    token_ids: list[int] = best.tolist()
    peaks: list[float] = values[indices, best].tolist()
    chosen: dict[int, Chosen] = {}
    start = 0
    for i in found:
        end = start + 1 + len(rows[i].draft_ids)
        chosen[i] = _run(token_ids[start:end], peaks[start:end], rows[i].draft_ids)
        start = end
    return chosen


def failed(message: str) -> Chosen:
    """Returns the end of a sequence that has no next token."""
    return Chosen([], finish=EngineFinish.FAILED, error=message)


def _run(token_ids: list[int], peaks: list[float], draft_ids: Sequence[int]) -> Chosen:
    """Takes the best tokens up to the first that is not as guessed."""
    for place, (token_id, peak) in enumerate(zip(token_ids, peaks, strict=True)):
        if not np.isfinite(peak):
            message = NOT_FINITE if peak != -np.inf else NOTHING_LEFT
            return Chosen(token_ids[:place], finish=EngineFinish.FAILED, error=message)
        if place == len(draft_ids) or token_id != draft_ids[place]:
            return Chosen(token_ids[: place + 1])
    raise AssertionError("a run has one place more than it has drafts")


def is_greedy(state: SequenceState, num_generated: int) -> bool:
    """Whether the likeliest token that may come is chosen, and nothing else is asked for."""
    return (
        state.params.temperature == 0.0
        and state.num_logprobs is None
        and state.fault is None
        and (num_generated >= state.min_tokens or state.early_ids.size == 0)
    )
