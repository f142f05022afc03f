"""A request as vLLM's `SamplingParams` takes it, and what it would not do exactly, refused by the field's name.

The same object goes over HTTP (`engines/vllm_http`) and to the library in this process: the rules stand once, here.
Every range is checked before vLLM sees a number: it raises low temperatures, cuts budgets to the context and leaves
seeds beyond 64 bits to its serializer, all without a word to the caller. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.engines.remote.sampling_facts import (
    check_everywhere,
    choice_seed,
    token_ids_of,
    unserved,
    why_stopped,
)
from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest

LEAST_TEMPERATURE = 0.01
"""vLLM silently raises lower ones to it."""
SEED_BITS = 63
FAILED = "The engine failed on this request."

_UNKNOWN_END = "The engine ended the output for an unknown reason."
_END_WORDS = {"length": EngineFinish.LENGTH, "abort": EngineFinish.ABORTED, "error": EngineFinish.FAILED}


@dataclass(frozen=True, slots=True)
class VllmLimits:
    """`max_logprobs` is the largest `logprobs` that the engine takes. None: not known, so not held against requests.

    One more than asked for is requested: where the chosen token is not among the best, vLLM leaves the last one out.
    """

    max_logprobs: int = 20
    max_model_len: int | None = None
    vocab_size: int | None = None


def check_fields(request: InferenceRequest, limits: VllmLimits) -> None:
    """Raises UnsupportedParameter for what vLLM would not do exactly, InvalidRequest for what it would refuse."""
    check_everywhere(request)
    if 0 < request.sampling.temperature < LEAST_TEMPERATURE:
        raise unserved("temperature", f"the engine's least above 0 is {LEAST_TEMPERATURE}")
    most = limits.max_logprobs
    if request.num_logprobs and request.num_logprobs >= most:
        raise unserved("top_logprobs", f"the engine gives {max(0, most - 1)} at most")
    if request.num_prompt_logprobs is not None and request.num_prompt_logprobs > most:
        raise unserved("prompt_logprobs", f"the engine gives {most} at most")
    _check_prompt(request, limits)


def _check_prompt(request: InferenceRequest, limits: VllmLimits) -> None:
    if request.num_prompt_tokens == 0:
        raise InvalidValue("the prompt has no tokens")
    needed = request.num_prompt_tokens + max(1, request.stop.max_tokens)
    if limits.max_model_len is not None and needed > limits.max_model_len:
        raise ContextLengthExceeded(
            f"the context holds {limits.max_model_len} tokens; prompt and output need {needed}",
            limit=LimitFact("context_length", limits.max_model_len, needed),
        )
    if limits.vocab_size is not None and max(token_ids_of(request)) >= limits.vocab_size:
        raise InvalidValue(f"the prompt has a token beyond the vocabulary's {limits.vocab_size}")


def sampling_fields(
    request: InferenceRequest, choice: int, eos_token_ids: tuple[int, ...], grammar: str | None
) -> dict[str, object]:
    """Returns the members of `SamplingParams` for one choice. `grammar` is the constraint's text.

    End tokens are named one by one, so that the served tokenizer's folder says what ends a turn, and not vLLM's reading
    of it.
    """
    sampling, stop = request.sampling, request.stop
    ends = () if stop.ignore_eos else eos_token_ids
    fields: dict[str, object] = {
        "n": 1,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": choice_seed(sampling.seed, choice, SEED_BITS),
        "max_tokens": max(1, stop.max_tokens),
        "min_tokens": min(stop.min_tokens, max(1, stop.max_tokens)),
        "stop_token_ids": list(dict.fromkeys((*stop.token_ids, *ends))),
        "ignore_eos": stop.ignore_eos,
        "detokenize": False,
    }
    if sampling.logit_bias:
        fields["logit_bias"] = dict(sampling.logit_bias)
    if sampling.allowed_token_ids is not None:
        fields["allowed_token_ids"] = list(sampling.allowed_token_ids)
    if request.num_logprobs is not None:
        fields["logprobs"] = request.num_logprobs + 1 if request.num_logprobs else 0
    if wants_scores(request, choice):
        fields["prompt_logprobs"] = request.num_prompt_logprobs
    if grammar is not None:
        fields["structured_outputs"] = {"grammar": grammar}
    return fields


def wants_scores(request: InferenceRequest, choice: int) -> bool:
    """Whether this choice brings the prompt's scores: the prompt of several choices is one, and scored once."""
    return request.num_prompt_logprobs is not None and choice == 0


def best(candidates: Iterable[tuple[int, float]], num_top: int) -> tuple[tuple[int, float], ...]:
    """Returns the likeliest candidates, each once, most likely first."""
    if num_top == 0:
        return ()
    return tuple(sorted(dict(candidates).items(), key=lambda pair: -pair[1])[:num_top])


@dataclass(frozen=True, slots=True)
class OutputEnd:
    """How vLLM ended an output, in our words."""

    finish: EngineFinish
    stop_token: int | None = None
    error: str | None = None


def read_end(
    request: InferenceRequest, reason: str, last_token: int | None, eos_token_ids: tuple[int, ...]
) -> OutputEnd:
    """Returns what `finish_reason` means for this request."""
    if reason == "stop":
        return OutputEnd(*why_stopped(request, last_token, eos_token_ids))
    finish = _END_WORDS.get(reason, EngineFinish.FAILED)
    if finish is not EngineFinish.FAILED:
        return OutputEnd(finish)
    return OutputEnd(finish, error=FAILED if reason == "error" else _UNKNOWN_END)
