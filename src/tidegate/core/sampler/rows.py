"""What the sampler holds for each sequence, and a batch's share of it as arrays."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from tidegate.core.chooser import ChooseRow
from tidegate.core.grammar_rows import GrammarRows
from tidegate.core.sampler.bad_words import BadWords
from tidegate.core.sampler.draw import stream_key, uniforms
from tidegate.core.sampler.penalties import SeenTokens
from tidegate.core.sampler.weights import Float64Array, IndexArray
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams


@dataclass(slots=True)
class SequenceState:
    """One open sequence: its parameters, ready for use, and its past as far as they need it.

    `generated` is kept only where `seen` or `bad_words` look at it. `fault` says why the parameters cannot be used.
    """

    params: SamplingParams
    key: int
    num_logprobs: int | None
    num_prompt_logprobs: int
    min_tokens: int
    early_ids: IndexArray
    """End and stop tokens: not to be chosen below `min_tokens`."""
    bias_ids: IndexArray
    bias_values: Float64Array
    allowed_ids: IndexArray | None
    bad_words: BadWords | None
    seen: SeenTokens | None
    prompt_tail: list[int]
    generated: list[int] = field(default_factory=list)
    fault: str | None = None
    grammars: GrammarRows | None = None
    """Where this sequence's grammar is; None when it has none."""

    @property
    def is_plain(self) -> bool:
        """True where the model's logits are used as they are, at every step after `min_tokens`."""
        return self.grammars is None and self.has_plain_fields

    @property
    def has_plain_fields(self) -> bool:
        """True where nothing but a grammar changes the model's logits, at every step after `min_tokens`."""
        return self.allowed_ids is None and self.bad_words is None and self.seen is None and self.bias_ids.size == 0

    def rewind(self, num_generated: int) -> None:
        """Forgets tokens that were chosen and then taken back by the scheduler."""
        while len(self.generated) > num_generated:
            token_id = self.generated.pop()
            if self.seen is not None:
                self.seen.retract(token_id)

    def past(self) -> list[int]:
        """Returns the newest tokens, oldest first: as many as `bad_words` needs, of prompt and output together."""
        num = self.bad_words.max_prefix if self.bad_words else 0
        return (self.prompt_tail + self.generated[-num:])[-num:] if num else []

    def record(self, token_id: int) -> None:
        """Takes note of a chosen token."""
        if self.seen is not None:
            self.seen.record(token_id)
        if self.seen is not None or self.bad_words is not None:
            self.generated.append(token_id)


def open_state(request: InferenceRequest, choice: int, vocab_size: int, eos_token_ids: Iterable[int]) -> SequenceState:
    """Digests a request. Never raises: what cannot be used becomes the state's `fault`."""
    params, stop = request.sampling, request.stop
    fault = find_fault(request, vocab_size)
    if fault is not None:
        params, stop = SamplingParams(), type(stop)(max_tokens=stop.max_tokens)
    prompt = np.frombuffer(request.prompt, dtype="<u4")
    early = {*stop.token_ids, *(() if stop.ignore_eos else eos_token_ids)}
    bad_words = BadWords(params.bad_words) if params.bad_words else None
    seen = None
    if params.presence_penalty != 0.0 or params.frequency_penalty != 0.0 or params.repetition_penalty != 1.0:
        seen = SeenTokens(_ids(prompt if params.repetition_penalty != 1.0 else ()))
    allowed = params.allowed_token_ids
    return SequenceState(
        params=params,
        key=stream_key(params.seed, choice),
        num_logprobs=request.num_logprobs,
        num_prompt_logprobs=request.num_prompt_logprobs or 0,
        min_tokens=stop.min_tokens,
        early_ids=_ids(sorted(early)),
        bias_ids=_ids([token_id for token_id, _ in params.logit_bias]),
        bias_values=np.array([value for _, value in params.logit_bias], dtype=np.float64),
        allowed_ids=None if allowed is None else np.unique(_ids(allowed)),
        bad_words=bad_words,
        seen=seen,
        prompt_tail=prompt[-bad_words.max_prefix :].tolist() if bad_words and bad_words.max_prefix else [],
        fault=fault,
    )


def find_fault(request: InferenceRequest, vocab_size: int) -> str | None:
    """Returns what makes a request's parameters unusable, naming field and limit, or None.

    The server checks all of this first. It is checked again because one row's bad number must not end the step.
    """
    params = request.sampling
    ranges = (
        ("temperature", params.temperature, 0.0 <= params.temperature < math.inf, "at least 0 and finite"),
        ("top_p", params.top_p, 0.0 < params.top_p <= 1.0, "above 0 and at most 1"),
        ("top_k", params.top_k, params.top_k >= 0, "at least 0"),
        ("min_p", params.min_p, 0.0 <= params.min_p <= 1.0, "between 0 and 1"),
        ("presence_penalty", params.presence_penalty, math.isfinite(params.presence_penalty), "finite"),
        ("frequency_penalty", params.frequency_penalty, math.isfinite(params.frequency_penalty), "finite"),
        (
            "repetition_penalty",
            params.repetition_penalty,
            0.0 < params.repetition_penalty < math.inf,
            "above 0 and finite",
        ),
    )
    for name, value, is_right, rule in ranges:
        if not is_right:
            return f"{name} is {value}; it must be {rule}"
    if not all(math.isfinite(value) for _, value in params.logit_bias):
        return "logit_bias holds a value that is not finite"
    named_ids = (
        ("logit_bias", [token_id for token_id, _ in params.logit_bias]),
        ("allowed_token_ids", params.allowed_token_ids or ()),
        ("bad_words", [token_id for word in params.bad_words for token_id in word]),
        ("stop_token_ids", request.stop.token_ids),
        ("prompt", np.frombuffer(request.prompt, dtype="<u4") if params.repetition_penalty != 1.0 else ()),
    )
    for name, ids in named_ids:
        array = _ids(ids)
        if array.size and not (array.min() >= 0 and array.max() < vocab_size):
            return f"{name} holds a token id outside the vocabulary of {vocab_size}"
    return None


def draw_numbers(states: Sequence[SequenceState], rows: Sequence[ChooseRow]) -> list[list[float]]:
    """Returns each row's random numbers in [0, 1), one for each place: functions of seed, choice and position alone."""
    sizes = [1 + len(row.draft_ids) for row in rows]
    keys = np.repeat(np.array([state.key for state in states], dtype=np.uint64), sizes)
    positions = [row.num_generated + place for row, size in zip(rows, sizes, strict=True) for place in range(size)]
    numbers: list[float] = uniforms(keys, np.array(positions, dtype=np.uint64)).tolist()
    ends = list(accumulate(sizes))
    return [numbers[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _ids(token_ids: "Sequence[int] | np.ndarray[tuple[int], np.dtype[np.uint32]]") -> IndexArray:
    return np.asarray(token_ids, dtype=np.int64)
