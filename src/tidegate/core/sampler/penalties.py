"""Presence, frequency and repetition penalties: which tokens a sequence has seen, and what that costs them.

Presence and frequency look at generated tokens, as OpenAI defines them; repetition looks at the prompt as well.
Only seen ids are touched, so the price grows with the text's vocabulary and not with the model's.
"""

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.sampler.weights import IndexArray
from tidegate.inference.sampling import SamplingParams

_LARGEST = float(np.finfo(np.float32).max)


class SeenTokens:
    """Counts of the tokens that one sequence generated, and the set of those in its prompt.

    The prompt's ids take the first slots; a generated id gets a slot when it first appears.
    """

    def __init__(self, prompt_ids: IndexArray) -> None:
        distinct = np.unique(prompt_ids)
        self._num_prompt = distinct.size
        self._size = distinct.size
        self._ids = np.zeros(distinct.size + 16, dtype=np.int64)
        self._ids[: distinct.size] = distinct
        self._counts = np.zeros(self._ids.size, dtype=np.int64)
        self._slots = {token_id: slot for slot, token_id in enumerate(distinct.tolist())}

    def record(self, token_id: int) -> None:
        """Counts one more generated token."""
        slot = self._slots.get(token_id)
        if slot is None:
            slot = self._size
            if slot == self._ids.size:
                self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
                self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
            self._slots[token_id] = slot
            self._ids[slot] = token_id
            self._size += 1
        self._counts[slot] += 1

    def retract(self, token_id: int) -> None:
        """Takes back one `record` of this token."""
        self._counts[self._slots[token_id]] -= 1

    def penalise(self, logits: Float32Array, params: SamplingParams) -> None:
        """Changes `logits` (shape [vocab]) in place. Minus infinity stays; nothing becomes plus infinity.

        Repetition comes first: it scales the model's own logit, and the other two then subtract.
        """
        ids = self._ids[: self._size]
        counts = self._counts[: self._size]
        values = logits[ids].astype(np.float64)
        if params.repetition_penalty != 1.0:
            scaled = np.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
            repeated = counts > 0
            repeated[: self._num_prompt] = True
            values = np.where(repeated, scaled, values)
        values -= params.frequency_penalty * counts + params.presence_penalty * (counts > 0)
        logits[ids] = np.minimum(values, _LARGEST)
