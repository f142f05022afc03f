"""vLLM's `/inference/v1/generate` on the wire: requests to JSON, answers to pieces. Pure.

Two shapes of log-probabilities are read: entries with `token_id`, and those of older servers with `token_id:N` as
text. An answer that is no stream carries the prompt's scores; a stream has none, so requests for them are not streamed.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.engines.remote.dialect import Order, Piece
from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.remote.sampling_facts import token_ids_of, unserved_constraint
from tidegate.engines.vllm.sampling_fields import (
    FAILED,
    VllmLimits,
    best,
    check_fields,
    read_end,
    sampling_fields,
    wants_scores,
)
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

GENERATE_PATH = "/inference/v1/generate"
ABORT_PATH = "/inference/v1/abort_requests"
ID_PREFIX = "generate-tokens-"
"""What vLLM puts before the ids that it is given."""

_TOKEN_TEXT = "token_id:"


@dataclass(frozen=True, slots=True)
class VllmAbilities:
    """What was found out by asking and trying."""

    model: str
    eos_token_ids: tuple[int, ...]
    limits: VllmLimits = field(default_factory=VllmLimits)
    takes_priority: bool = False
    grammars: GrammarWriter | None = None


class VllmDialect:
    """See `Dialect`."""

    def __init__(self, abilities: VllmAbilities) -> None:
        self._abilities = abilities

    def check(self, request: InferenceRequest) -> None:
        check_fields(request, self._abilities.limits)
        if request.grammar is not None:
            self._grammar(request.grammar)

    def order(self, request: InferenceRequest, choice: int, remote_id: str) -> Order:
        is_stream = not wants_scores(request, choice)
        body: dict[str, object] = {
            "request_id": remote_id,
            "model": self._abilities.model,
            "token_ids": token_ids_of(request),
            "sampling_params": self._sampling(request, choice),
            "stream": is_stream,
        }
        if is_stream:
            body["stream_options"] = {"include_usage": True}
        if request.cache_salt:
            body["cache_salt"] = request.cache_salt.hex()
        if self._abilities.takes_priority and request.priority:
            body["priority"] = request.priority
        return Order(GENERATE_PATH, msgspec.json.encode(body), is_stream)

    def reader(self, request: InferenceRequest, choice: int) -> "VllmReader":
        return VllmReader(request, choice, self._abilities.eos_token_ids)

    def abort_order(self, remote_id: str) -> Order | None:
        """Closing the connection aborts as well; newer servers also hear it through a proxy that keeps connections."""
        return Order(ABORT_PATH, msgspec.json.encode({"request_ids": [f"{ID_PREFIX}{remote_id}"]}), is_stream=False)

    def _sampling(self, request: InferenceRequest, choice: int) -> dict[str, object]:
        grammar = None if request.grammar is None else self._grammar(request.grammar)
        return sampling_fields(request, choice, self._abilities.eos_token_ids, grammar)

    def _grammar(self, rule: GrammarRule) -> str:
        if self._abilities.grammars is None:
            raise unserved_constraint("the engine does not enforce grammars")
        return self._abilities.grammars.text(rule)


class _Candidate(msgspec.Struct):
    logprob: float
    token_id: int | None = None
    token: str | None = None


class _Entry(msgspec.Struct):
    logprob: float = -9999.0
    token_id: int | None = None
    token: str | None = None
    top_logprobs: list[_Candidate] = []


class _Logprobs(msgspec.Struct):
    content: list[_Entry] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    token_ids: list[int] | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _PromptDetails | None = None


class _Score(msgspec.Struct):
    logprob: float


class _Answer(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    prompt_logprobs: list[dict[int, _Score] | None] | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Answer)


class VllmReader:
    """See `OutputReader`. An event of the stream and the answer that is no stream have one shape."""

    def __init__(self, request: InferenceRequest, choice: int, eos_token_ids: tuple[int, ...]) -> None:
        self._request = request
        self._eos_token_ids = eos_token_ids
        self._last_token: int | None = None
        self._wants_scores = wants_scores(request, choice)

    def feed(self, data: bytes) -> Piece | None:
        try:
            answer = _DECODER.decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableAnswer(f"an event that cannot be read ({error})") from None
        if answer.error is not None:
            return Piece(finish=EngineFinish.FAILED, error=FAILED, is_last=True)
        cached = None if answer.usage is None else _cached(answer.usage)
        if not answer.choices:
            return None if answer.usage is None else Piece(num_cached_tokens=cached)
        if len(answer.choices) > 1 or answer.choices[0].index != 0:
            raise UnreadableAnswer("a choice that was not asked for")
        piece = self._piece(answer.choices[0])
        piece.num_cached_tokens = cached
        if self._wants_scores:
            piece.prompt_logprobs = self._scores(answer.prompt_logprobs)
        return piece

    def _piece(self, choice: _Choice) -> Piece:
        token_ids = choice.token_ids or []
        if any(token_id < 0 for token_id in token_ids):
            raise UnreadableAnswer("a token below 0")
        if token_ids:
            self._last_token = token_ids[-1]
        piece = Piece(token_ids)
        if self._request.num_logprobs is not None:
            piece.logprobs = self._logprobs(choice.logprobs, token_ids, self._request.num_logprobs)
        if choice.finish_reason is not None:
            end = read_end(self._request, choice.finish_reason, self._last_token, self._eos_token_ids)
            piece.finish, piece.stop_token, piece.error = end.finish, end.stop_token, end.error
        return piece

    def _logprobs(self, logprobs: _Logprobs | None, token_ids: list[int], num_top: int) -> list[TokenLogprob]:
        entries = (logprobs.content if logprobs is not None else None) or []
        if [_id_of(entry) for entry in entries] != token_ids:
            raise UnreadableAnswer("log-probabilities of other tokens than the output's")
        return [
            TokenLogprob(
                token_id,
                entry.logprob,
                best(((_id_of(candidate), candidate.logprob) for candidate in entry.top_logprobs), num_top),
            )
            for token_id, entry in zip(token_ids, entries, strict=True)
        ]

    def _scores(self, scores: list[dict[int, _Score] | None] | None) -> list[TokenLogprob | None]:
        prompt, num_top = token_ids_of(self._request), self._request.num_prompt_logprobs or 0
        if scores is None or len(scores) != len(prompt):
            raise UnreadableAnswer("scores of another prompt")
        found: list[TokenLogprob | None] = []
        for token_id, score in zip(prompt, scores, strict=True):
            if score is None:
                found.append(None)
            elif token_id not in score:
                raise UnreadableAnswer("scores without the prompt's own token")
            else:
                top = best(((other, one.logprob) for other, one in score.items()), num_top)
                found.append(TokenLogprob(token_id, score[token_id].logprob, top))
        return found


def _cached(usage: _Usage) -> int | None:
    return None if usage.prompt_tokens_details is None else usage.prompt_tokens_details.cached_tokens


def _id_of(entry: _Entry | _Candidate) -> int:
    if entry.token_id is not None:
        return entry.token_id
    digits = (entry.token or "").removeprefix(_TOKEN_TEXT)
    if not digits.isascii() or not digits.isdecimal():
        raise UnreadableAnswer("log-probabilities without token ids")
    return int(digits)
