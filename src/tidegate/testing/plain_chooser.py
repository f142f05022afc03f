"""A small `Chooser` for tests of what stands around it. It is strict about how it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.core.backend import Float32Array, StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

_NUM_CANDIDATES = 8


@dataclass(slots=True)
class _State:
    request: InferenceRequest
    choice: int
    num_chosen: int = 0
    num_plays: int = 0


class PlainChooser:
    """Takes the likeliest token at temperature 0, else one of the first eight by (seed, choice, position).

    A choice named in `plays`, by request id and index, gets those results in turn instead. Wrong use raises
    AssertionError: keys that are not open, or used twice, and positions that do not follow each other.
    """

    def __init__(self, plays: Mapping[tuple[str, int], Sequence[Chosen]] | None = None) -> None:
        self._plays = plays if plays is not None else {}
        self._open: dict[int, _State] = {}
        self._used: set[int] = set()

    @property
    def open_keys(self) -> frozenset[int]:
        return frozenset(self._open)

    def open(self, key: int, request: InferenceRequest, choice: int, grammar: GrammarOrder | None = None) -> None:
        assert grammar is None, "this chooser knows no grammars"
        assert key not in self._used, f"key {key} is used twice"
        self._used.add(key)
        self._open[key] = _State(request, choice)

    def is_ready(self, key: int) -> bool:
        assert key in self._open, f"key {key} is not open"
        return True

    def choose(self, rows: Sequence[ChooseRow], logits: StepLogits) -> list[Chosen]:
        assert len({row.key for row in rows}) == len(rows), "a sequence is due twice in one step"
        return [self._choose_run(row, logits.values) for row in rows]

    def score_prompt(
        self, key: int, first_row: int, token_ids: Sequence[int], logits: StepLogits
    ) -> list[TokenLogprob]:
        assert key in self._open, f"key {key} is not open"
        assert first_row + len(token_ids) <= len(logits.rows)
        return [
            TokenLogprob(token_id, _logprob(logits.values[first_row + index], token_id))
            for index, token_id in enumerate(token_ids)
        ]

    def close(self, key: int) -> None:
        self._open.pop(key, None)

    def _choose_run(self, row: ChooseRow, values: Float32Array) -> Chosen:
        state = self._open[row.key]
        assert row.num_generated == state.num_chosen, f"key {row.key} is at {state.num_chosen}, not {row.num_generated}"
        chosen = self._choose_one(state, values[row.row])
        for place, draft_id in enumerate(row.draft_ids, start=1):
            if chosen.token_ids[-1:] != [draft_id] or chosen.finish is not None:
                break
            after = self._choose_one(state, values[row.row + place])
            chosen.token_ids += after.token_ids
            if after.logprobs is not None:
                chosen.logprobs = (chosen.logprobs or []) + after.logprobs
        return chosen

    def _choose_one(self, state: _State, values: Float32Array) -> Chosen:
        plays = self._plays.get((state.request.request_id, state.choice))
        if plays is not None:
            chosen = plays[state.num_plays]
            state.num_plays += 1
        else:
            token_id = self._token(state, values)
            wants = state.request.num_logprobs is not None
            chosen = Chosen([token_id], [TokenLogprob(token_id, _logprob(values, token_id))] if wants else None)
        state.num_chosen += len(chosen.token_ids)
        return chosen

    def _token(self, state: _State, values: Float32Array) -> int:
        sampling = state.request.sampling
        if sampling.temperature == 0:
            return int(values.argmax())
        rank = (sampling.seed * 31 + state.choice * 17 + state.num_chosen * 7) % _NUM_CANDIDATES
        return int(np.argsort(-values, kind="stable")[rank])


def _logprob(values: Float32Array, token_id: int) -> float:
    shifted = values.astype(np.float64) - float(values.max())
    return float(shifted[token_id] - np.log(np.exp(shifted).sum()))
