"""vLLM's `RequestOutput` as it comes from `AsyncLLM.generate` in deltas, read into pieces.

Token ids are new ones only, several where the reader was behind; the token that ended the output is among them. The
prompt's scores come with the first output and never again, `num_cached_tokens` with all. Objects are read by their
members alone, so that a stand-in will do. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidegate.engines.remote.dialect import Piece
from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.remote.sampling_facts import token_ids_of
from tidegate.engines.vllm.sampling_fields import best, read_end, wants_scores
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

LOWEST = -9999.0
"""What stands for minus infinity."""


class Scored(Protocol):
    """vLLM's `Logprob`."""

    @property
    def logprob(self) -> float: ...


Scores = Mapping[int, Scored]


class VllmOutputReader:
    """The output of one choice, which vLLM runs as a request with one choice."""

    def __init__(self, request: InferenceRequest, choice: int, eos_token_ids: tuple[int, ...]) -> None:
        self._request = request
        self._eos_token_ids = eos_token_ids
        self._wants_scores = wants_scores(request, choice)
        self._last_token: int | None = None
        self._is_first = True

    def read(self, output: Any) -> Piece:
        """Returns what an output adds. Raises UnreadableAnswer for another shape than asked for."""
        if len(output.outputs) != 1 or output.outputs[0].index != 0:
            raise UnreadableAnswer("a choice that was not asked for")
        completion = output.outputs[0]
        token_ids = [int(token_id) for token_id in completion.token_ids]
        if token_ids:
            self._last_token = token_ids[-1]
        piece = Piece(token_ids)
        if self._request.num_logprobs is not None:
            piece.logprobs = self._logprobs(token_ids, completion.logprobs or [], self._request.num_logprobs)
        if self._is_first:
            self._is_first = False
            self._read_first(output, piece)
        if completion.finish_reason is not None:
            end = read_end(self._request, completion.finish_reason, self._last_token, self._eos_token_ids)
            piece.finish, piece.stop_token, piece.error = end.finish, end.stop_token, end.error
        return piece

    def _read_first(self, output: Any, piece: Piece) -> None:
        piece.num_cached_tokens = output.num_cached_tokens
        piece.queue_s = _queue_s(output.metrics)
        is_aborted = output.outputs[0].finish_reason == "abort" and not piece.token_ids
        if self._wants_scores and not is_aborted:
            piece.prompt_logprobs = self._prompt_scores(output.prompt_logprobs)

    def _logprobs(self, token_ids: list[int], entries: Sequence[Scores], num_top: int) -> list[TokenLogprob]:
        if len(entries) != len(token_ids) or any(t not in entry for t, entry in zip(token_ids, entries, strict=True)):
            raise UnreadableAnswer("log-probabilities of other tokens than the output's")
        return [_entry(token_id, entry, num_top) for token_id, entry in zip(token_ids, entries, strict=True)]

    def _prompt_scores(self, scores: Sequence[Scores | None] | None) -> list[TokenLogprob | None]:
        prompt, num_top = token_ids_of(self._request), self._request.num_prompt_logprobs or 0
        if scores is None or len(scores) != len(prompt):
            raise UnreadableAnswer("scores of another prompt")
        found: list[TokenLogprob | None] = []
        for token_id, entry in zip(prompt, scores, strict=True):
            if entry is not None and token_id not in entry:
                raise UnreadableAnswer("scores without the prompt's own token")
            found.append(None if entry is None else _entry(token_id, entry, num_top))
        return found


def _entry(token_id: int, scores: Scores, num_top: int) -> TokenLogprob:
    top = best(((int(other), _finite(one.logprob)) for other, one in scores.items()), num_top)
    return TokenLogprob(token_id, _finite(scores[token_id].logprob), top)


def _finite(logprob: float) -> float:
    return max(LOWEST, float(logprob))  # in this order also for what is no number


def _queue_s(metrics: Any) -> float:
    """Returns the seconds between queued and scheduled; 0 where vLLM does not say."""
    queued = getattr(metrics, "queued_ts", 0.0) or 0.0
    scheduled = getattr(metrics, "scheduled_ts", 0.0) or 0.0
    return max(0.0, scheduled - queued) if queued and scheduled else 0.0
