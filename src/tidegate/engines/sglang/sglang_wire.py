"""SGLang's `/generate` with token ids on the wire: requests to JSON, answers to pieces. Pure.

Outputs are cumulative unless the server was started with incremental streaming; then each event has the new tokens
alone. Log-probabilities are the model's own only where nothing has changed the logits before: elsewhere they are
refused, because SGLang would give those after temperature, bias, penalties and mask.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from tidegate.engines.remote.dialect import Order, Piece
from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.remote.sampling_facts import (
    check_everywhere,
    choice_seed,
    token_ids_of,
    unserved,
    unserved_constraint,
    why_stopped,
)
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest

GENERATE_PATH = "/generate"
ABORT_PATH = "/abort_request"
SEED_BITS = 31
FAILED = "The engine failed on this request."

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class SglangAbilities:
    """What the server said of itself. `priority_sign`: 1 where lower runs first, -1 where higher, 0 for neither."""

    eos_token_ids: tuple[int, ...]
    is_incremental: bool = False
    is_repeatable: bool = False
    priority_sign: int = 0
    grammars: GrammarWriter | None = None


class SglangDialect:
    """See `Dialect`."""

    def __init__(self, abilities: SglangAbilities) -> None:
        self._abilities = abilities

    def check(self, request: InferenceRequest) -> None:
        check_everywhere(request)
        if request.sampling.allowed_token_ids is not None:
            raise unserved("allowed_token_ids", "the engine has no such list")
        if request.num_logprobs is not None:
            _check_raw(request)
        if request.grammar is not None:
            self._grammar(request.grammar)

    def order(self, request: InferenceRequest, choice: int, remote_id: str) -> Order:
        body: dict[str, object] = {
            "rid": remote_id,
            "input_ids": token_ids_of(request),
            "sampling_params": self._sampling(request, choice),
            "stream": True,
        }
        num_top = max(request.num_logprobs or 0, _num_scores(request, choice) or 0)
        if request.num_logprobs is not None or _num_scores(request, choice) is not None:
            body["return_logprob"] = True
            body["top_logprobs_num"] = num_top
            body["logprob_start_len"] = -1 if _num_scores(request, choice) is None else 0
        if request.cache_salt:
            body["extra_key"] = request.cache_salt.hex()
        if self._abilities.priority_sign:
            body["priority"] = self._abilities.priority_sign * request.priority
        return Order(GENERATE_PATH, msgspec.json.encode(body))

    def reader(self, request: InferenceRequest, choice: int) -> "SglangReader":
        return SglangReader(request, choice, self._abilities)

    def abort_order(self, remote_id: str) -> Order | None:
        """Closing the connection aborts two seconds later; the order at once."""
        return Order(ABORT_PATH, msgspec.json.encode({"rid": remote_id}), is_stream=False)

    def _sampling(self, request: InferenceRequest, choice: int) -> dict[str, object]:
        sampling, stop = request.sampling, request.stop
        params: dict[str, object] = {
            "n": 1,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or -1,
            "min_p": sampling.min_p,
            "presence_penalty": sampling.presence_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "repetition_penalty": sampling.repetition_penalty,
            "max_new_tokens": max(1, stop.max_tokens),
            "min_new_tokens": min(stop.min_tokens, max(1, stop.max_tokens)),
            "stop_token_ids": list(stop.token_ids),
            "ignore_eos": stop.ignore_eos,
            "skip_special_tokens": False,
            "no_stop_trim": True,
        }
        if self._abilities.is_repeatable:
            params["sampling_seed"] = choice_seed(sampling.seed, choice, SEED_BITS)
        if sampling.logit_bias:
            params["logit_bias"] = {str(token_id): bias for token_id, bias in sampling.logit_bias}
        if request.grammar is not None:
            params["ebnf"] = self._grammar(request.grammar)
        return params

    def _grammar(self, rule: GrammarRule) -> str:
        if self._abilities.grammars is None:
            raise unserved_constraint("the engine does not enforce grammars")
        return self._abilities.grammars.text(rule)


def _check_raw(request: InferenceRequest) -> None:
    sampling = request.sampling
    changes = {
        "temperature": sampling.temperature not in (0.0, 1.0),
        "logit_bias": bool(sampling.logit_bias),
        "presence_penalty": sampling.presence_penalty != 0.0,
        "frequency_penalty": sampling.frequency_penalty != 0.0,
        "repetition_penalty": sampling.repetition_penalty != 1.0,
        "min_tokens": request.stop.min_tokens > 0,
        "response_format": request.grammar is not None,
    }
    for param, is_there in changes.items():
        if is_there:
            raise unserved("logprobs", f"not together with {param}: the engine's are not the model's own then")


Scored = tuple[float | None, int, str | None]


class _Finish(msgspec.Struct):
    type: str
    status_code: int | None = None


class _Meta(msgspec.Struct):
    finish_reason: _Finish | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    output_token_logprobs: list[Scored] | None = None
    output_top_logprobs: list[list[Scored] | None] | None = None
    input_token_logprobs: list[Scored] | None = None
    input_top_logprobs: list[list[Scored] | None] | None = None


class _Answer(msgspec.Struct):
    output_ids: list[int] | None = None
    meta_info: _Meta | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Answer)


class SglangReader:
    """See `OutputReader`."""

    def __init__(self, request: InferenceRequest, choice: int, abilities: SglangAbilities) -> None:
        self._request = request
        self._abilities = abilities
        self._num_seen = 0
        self._last_token: int | None = None
        self._num_scores = _num_scores(request, choice)
        self._has_scores = self._num_scores is None
        self._has_begun = False

    def feed(self, data: bytes) -> Piece | None:
        try:
            answer = _DECODER.decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableAnswer(f"an event that cannot be read ({error})") from None
        if answer.error is not None:
            return Piece(finish=EngineFinish.FAILED, error=FAILED, is_last=True)
        meta = answer.meta_info
        if meta is None:
            raise UnreadableAnswer("an event without meta_info")
        piece = Piece(self._new(answer.output_ids or []))
        if self._request.num_logprobs is not None:
            self._add_logprobs(piece, meta, self._request.num_logprobs)
        self._num_seen += len(piece.token_ids)
        if piece.token_ids:
            self._last_token = piece.token_ids[-1]
        if not self._has_scores and meta.input_token_logprobs:
            piece.prompt_logprobs = self._scores(meta)
            self._has_scores = True
        if not self._has_begun:
            piece.num_cached_tokens = meta.cached_tokens
            self._has_begun = True
        if meta.finish_reason is not None:
            self._finish(piece, meta, meta.finish_reason)
        return piece

    def _new(self, items: list[Item]) -> list[Item]:
        """Returns what an event adds to a list of the output."""
        if self._abilities.is_incremental:
            return items
        if len(items) < self._num_seen:
            raise UnreadableAnswer("an output that has become shorter")
        return items[self._num_seen :]

    def _add_logprobs(self, piece: Piece, meta: _Meta, num_top: int) -> None:
        """Adds log-probabilities. An event may have more tokens than entries; the others come with the next one."""
        entries = self._new(meta.output_token_logprobs or [])
        tops = self._new(meta.output_top_logprobs or []) if num_top else []
        if not self._abilities.is_incremental and len(entries) < len(piece.token_ids):
            del piece.token_ids[len(entries) :]
        entries = entries[: len(piece.token_ids)]
        if [entry[1] for entry in entries] != piece.token_ids or (num_top and len(tops) < len(entries)):
            raise UnreadableAnswer("log-probabilities of other tokens than the output's")
        piece.logprobs = [
            TokenLogprob(entry[1], _finite(entry[0]), _top(tops[i], num_top) if num_top else ())
            for i, entry in enumerate(entries)
        ]

    def _scores(self, meta: _Meta) -> list[TokenLogprob | None]:
        prompt, entries = token_ids_of(self._request), meta.input_token_logprobs or []
        if [entry[1] for entry in entries] != prompt:
            raise UnreadableAnswer("scores of another prompt")
        num_top = self._num_scores or 0
        tops = (meta.input_top_logprobs or []) if num_top else [None] * len(entries)
        if len(tops) != len(entries):
            raise UnreadableAnswer("scores without their alternatives")
        return [
            None if entry[0] is None else TokenLogprob(entry[1], _finite(entry[0]), _top(top, num_top))
            for entry, top in zip(entries, tops, strict=True)
        ]

    def _finish(self, piece: Piece, meta: _Meta, finish: _Finish) -> None:
        piece.is_last = True
        if finish.type in ("stop", "length") and meta.completion_tokens not in (None, self._num_seen):
            raise UnreadableAnswer(f"{self._num_seen} tokens, and it counts {meta.completion_tokens}")
        if not self._has_scores and finish.type in ("stop", "length"):
            raise UnreadableAnswer("no scores of the prompt")
        match finish.type:
            case "stop":
                piece.finish, piece.stop_token = why_stopped(
                    self._request, self._last_token, self._abilities.eos_token_ids
                )
            case "length":
                piece.finish = EngineFinish.LENGTH
            case "abort" if finish.status_code is None:
                piece.finish = EngineFinish.ABORTED
            case _:
                piece.finish, piece.error = EngineFinish.FAILED, FAILED


def _num_scores(request: InferenceRequest, choice: int) -> int | None:
    """The prompt of several choices is one, and scored once."""
    return request.num_prompt_logprobs if choice == 0 else None


def _top(candidates: list[Scored] | None, num_top: int) -> tuple[tuple[int, float], ...]:
    listed = {token_id: _finite(logprob) for logprob, token_id, _ in candidates or []}
    return tuple(sorted(listed.items(), key=lambda pair: -pair[1])[:num_top])


def _finite(logprob: float | None) -> float:
    return -9999.0 if logprob is None else max(logprob, -9999.0)
