"""From contract fields to how tokens are chosen, when generation stops, and which log-probabilities are returned.

Ranges of single numbers stand on the wire types (`contract/bounds.py`); here is what needs the vocabulary, the context
or two fields at once. Absent fields have OpenAI's defaults, which are those of `SamplingParams`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tidegate.contract.bounds import Limits, over_limit
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.generation import GenerationRequest
from tidegate.contract.quote import quote
from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact
from tidegate.inference.sampling import SamplingParams, StopRules

MAX_BAD_WORDS = 1024
MAX_TOKEN_DIGITS = 10

Encode = Callable[[str], Sequence[int]]
"""Encodes plain text, adding nothing."""
GeneratingRequest = ChatRequest | CompletionRequest


@dataclass(frozen=True, slots=True)
class StopStrings:
    """Stop strings, matched in visible text. Those that complete within the first `min_tokens` tokens do not count."""

    strings: tuple[str, ...] = ()
    include_match: bool = False
    min_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LogprobCounts:
    """None for no log-probabilities, 0 for the chosen tokens' only, n for n alternatives as well.

    `num_prompt` is what the engine must compute. `returns_prompt` says that the caller asked for it by itself, under
    `prompt_logprobs`; otherwise it belongs to the echo of a completion.
    """

    num_output: int | None = None
    num_prompt: int | None = None
    returns_prompt: bool = False


def sampling_params(request: GenerationRequest, *, vocab_size: int, encode: Encode, minted_seed: int) -> SamplingParams:
    """Returns the sampling parameters; `minted_seed` serves where the caller gave none. Raises InvalidValue."""
    return SamplingParams(
        temperature=_given(request.temperature, 1.0),
        top_p=_given(request.top_p, 1.0),
        top_k=min(max(request.top_k or 0, 0), vocab_size),
        min_p=_given(request.min_p, 0.0),
        presence_penalty=_given(request.presence_penalty, 0.0),
        frequency_penalty=_given(request.frequency_penalty, 0.0),
        repetition_penalty=_given(request.repetition_penalty, 1.0),
        seed=request.seed if request.seed is not None else minted_seed,
        logit_bias=_logit_bias(request.logit_bias or {}, vocab_size),
        allowed_token_ids=_allowed_token_ids(request.allowed_token_ids, vocab_size),
        bad_words=_bad_words(request.bad_words or [], encode),
    )


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _logit_bias(bias: dict[str, float], vocab_size: int) -> tuple[tuple[int, float], ...]:
    return tuple((_token_key(key, vocab_size), value) for key, value in bias.items())


def _token_key(key: str, vocab_size: int) -> int:
    is_number = key.isascii() and key.isdigit() and len(key) <= MAX_TOKEN_DIGITS and str(int(key)) == key
    if not is_number:
        raise InvalidValue(f"logit_bias: {quote(key)} is not a token id", param="logit_bias")
    token_id = int(key)
    if token_id >= vocab_size:
        raise _outside("logit_bias", token_id, vocab_size)
    return token_id


def _outside(param: str, token_id: int, vocab_size: int) -> InvalidValue:
    return InvalidValue(
        f"{param}: token id {quote(str(token_id))} is outside the vocabulary, which has ids 0 to {vocab_size - 1}",
        param=param,
    )


def check_token_ids(param: str, token_ids: Sequence[int], vocab_size: int) -> None:
    """Raises InvalidValue, with the path of the first one, when one of `token_ids` is not in the vocabulary."""
    if not token_ids or (min(token_ids) >= 0 and max(token_ids) < vocab_size):
        return
    index = next(index for index, token_id in enumerate(token_ids) if not 0 <= token_id < vocab_size)
    raise _outside(f"{param}[{index}]", token_ids[index], vocab_size)


def _allowed_token_ids(token_ids: list[int] | None, vocab_size: int) -> tuple[int, ...] | None:
    if token_ids is None:
        return None
    if not token_ids:
        raise InvalidValue("allowed_token_ids: must have at least 1 entry", param="allowed_token_ids")
    check_token_ids("allowed_token_ids", token_ids, vocab_size)
    return tuple(dict.fromkeys(token_ids))


def _bad_words(words: list[str], encode: Encode) -> tuple[tuple[int, ...], ...]:
    """Each word as it stands at the start of a text, and as it stands after a space."""
    if len(words) > MAX_BAD_WORDS:
        raise InvalidValue(f"bad_words: at most {MAX_BAD_WORDS} entries, not {len(words)}", param="bad_words")
    sequences: dict[tuple[int, ...], None] = {}
    for word in words:
        if not word:
            raise InvalidValue("bad_words: a word must not be empty", param="bad_words")
        spellings = (word,) if word[0].isspace() else (word, " " + word)
        for spelling in spellings:
            if token_ids := tuple(encode(spelling)):
                sequences[token_ids] = None
    return tuple(sequences)


def stop_rules(request: GenerationRequest, *, max_tokens: int, vocab_size: int) -> StopRules:
    """Returns when the engine ends a choice; `max_tokens` comes from `token_budget`. Raises InvalidValue."""
    min_tokens = request.min_tokens or 0
    if min_tokens > max_tokens:
        message = f"min_tokens: {quote(str(min_tokens))} is more than the {max_tokens} tokens that may be generated"
        raise InvalidValue(message, param="min_tokens")
    token_ids = request.stop_token_ids or []
    check_token_ids("stop_token_ids", token_ids, vocab_size)
    return StopRules(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        token_ids=tuple(dict.fromkeys(token_ids)),
        ignore_eos=bool(request.ignore_eos),
    )


def check_choosable(sampling: SamplingParams, stop: StopRules, *, vocab_size: int, eos_ids: Collection[int]) -> None:
    """Raises InvalidValue when the request itself forbids every token that could be chosen first.

    `bad_words` of one token count always, ends and stop tokens below `min_tokens`. What several tokens of the past
    forbid is not foreseen here.
    """
    forbidden = {word[0] for word in sampling.bad_words if len(word) == 1}
    if stop.min_tokens > 0:
        forbidden.update(stop.token_ids, () if stop.ignore_eos else eos_ids)
    allowed = sampling.allowed_token_ids
    is_left = len(forbidden) < vocab_size if allowed is None else not forbidden.issuperset(allowed)
    if is_left or stop.max_tokens == 0:
        return
    param = "allowed_token_ids" if allowed is not None else "bad_words" if sampling.bad_words else "stop_token_ids"
    message = f"{param}: together with bad_words, stop_token_ids and min_tokens this leaves no token to choose"
    raise InvalidValue(message, param=param)


def stop_strings(request: GenerationRequest) -> StopStrings:
    """Returns the stop strings, equal ones once; their number and that none is empty has been checked."""
    stop = request.stop
    strings = () if stop is None else (stop,) if isinstance(stop, str) else tuple(dict.fromkeys(stop))
    return StopStrings(strings, bool(request.include_stop_str_in_output), request.min_tokens or 0)


def logprob_counts(request: GeneratingRequest) -> LogprobCounts:
    """Returns which log-probabilities the engine must compute."""
    if isinstance(request, ChatRequest):
        num_output = (request.top_logprobs or 0) if request.logprobs else None
        num_echoed = None
    else:
        num_output = request.logprobs
        num_echoed = request.logprobs if request.echo else None
    asked = request.prompt_logprobs
    if asked is None:
        return LogprobCounts(num_output, num_echoed)
    return LogprobCounts(num_output, max(asked, num_echoed or 0), returns_prompt=True)


def token_budget(request: GeneratingRequest, *, num_prompt_tokens: int, max_model_len: int, limits: Limits) -> int:
    """Returns the largest number of tokens to generate for one choice; 0 means prefill only.

    What is given must fit the context, or ContextLengthExceeded names the field: never a silent clamp. Absent: what is
    left of the context, up to `max_output_tokens`. That holds for completions too, where OpenAI has a default of 16.
    """
    given, param = _given_budget(request)
    room = max_model_len - num_prompt_tokens
    if given is not None:
        if limits.max_output_tokens is not None and given > limits.max_output_tokens:
            raise over_limit(param, "max_output_tokens", value=limits.max_output_tokens, actual=given)
        if given > room and num_prompt_tokens < max_model_len:
            raise _too_long(param, num_prompt_tokens, given, max_model_len)
    least = 0 if given == 0 else 1
    if room < least:
        raise _too_long(_prompt_field(request), num_prompt_tokens, given or least, max_model_len)
    if given is not None:
        return given
    return room if limits.max_output_tokens is None else min(room, limits.max_output_tokens)


def _given_budget(request: GeneratingRequest) -> tuple[int | None, str]:
    if isinstance(request, ChatRequest) and request.max_completion_tokens is not None:
        return request.max_completion_tokens, "max_completion_tokens"
    return request.max_tokens, "max_tokens"


def _prompt_field(request: GeneratingRequest) -> str:
    return "messages" if isinstance(request, ChatRequest) else "prompt"


def _too_long(param: str, num_prompt_tokens: int, num_output_tokens: int, max_model_len: int) -> ContextLengthExceeded:
    actual = num_prompt_tokens + num_output_tokens
    return ContextLengthExceeded(
        f"the context holds {max_model_len} tokens; this request needs {num_prompt_tokens} for the prompt and "
        f"{num_output_tokens} for the output",
        param=param,
        limit=LimitFact("context_length", max_model_len, actual),
    )
