"""Outputs on their way out: at most one delta for each choice until they are taken."""

from tidegate.core.sequence import LiveRequest, Sequence
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest


class Outbox:
    """Collects deltas between two takes."""

    def __init__(self) -> None:
        self._deltas: list[TokenDelta] = []
        self._open: dict[int, TokenDelta] = {}

    def __len__(self) -> int:
        return len(self._deltas)

    def take(self) -> list[TokenDelta]:
        """Returns all deltas since the last call, in the order in which they began."""
        deltas, self._deltas, self._open = self._deltas, [], {}
        return deltas

    def add_prompt_logprobs(self, sequence: Sequence, entries: list[TokenLogprob | None]) -> None:
        delta = self._delta(sequence)
        delta.prompt_logprobs = entries if delta.prompt_logprobs is None else delta.prompt_logprobs + entries

    def add_tokens(self, sequence: Sequence, token_ids: list[int], logprobs: list[TokenLogprob] | None) -> None:
        delta = self._delta(sequence)
        delta.token_ids = delta.token_ids + token_ids
        if logprobs is not None:
            delta.logprobs = logprobs if delta.logprobs is None else delta.logprobs + logprobs

    def finish(
        self, sequence: Sequence, finish: EngineFinish, *, stop_token: int | None = None, error: str | None = None
    ) -> None:
        delta = self._delta(sequence)
        delta.finish = finish
        delta.stop_token = stop_token
        delta.error = error

    def refuse(self, request: InferenceRequest, error: str) -> None:
        """Ends every choice of a request that never lived."""
        self._deltas += [
            TokenDelta(request.request_id, choice, [], EngineFinish.FAILED, error=error)
            for choice in range(request.num_choices)
        ]

    def _delta(self, sequence: Sequence) -> TokenDelta:
        delta = self._open.get(sequence.key)
        if delta is None:
            delta = TokenDelta(sequence.live.request.request_id, sequence.choice, [])
            if not sequence.live.is_announced:
                _announce(sequence.live, delta)
            self._open[sequence.key] = delta
            self._deltas.append(delta)
        return delta


def _announce(live: LiveRequest, delta: TokenDelta) -> None:
    live.is_announced = True
    delta.num_prompt_tokens = len(live.prompt)
    delta.num_cached_tokens = live.num_cached
    delta.queue_s = live.queue_s
    script = live.request.script
    if script is not None:
        delta.num_cached_tokens = script.num_cached_tokens
        if script.num_prompt_tokens is not None:
            delta.num_prompt_tokens = script.num_prompt_tokens
