"""Every field of a generating request, and what becomes of it. The tables are the rule; a test holds them complete.

A row says how a field is used, what makes it malformed (400, in the order of the table, before any 422), and when it is
well formed but not served (422 `unsupported_parameter`: never silently ignored). Ranges of single numbers stand on the
wire types. What needs the vocabulary or the tokens is checked in `sampling_rules.py` and `prompt_rules.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from tidegate.contract.bounds import over_limit
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.generation import GenerationRequest
from tidegate.errors import InvalidValue, UnsupportedParameter
from tidegate.serving.constraint_rules import (
    DROPPED_CONDITIONS,
    check_beside_tools,
    check_structured_outputs,
    constraint_of,
)
from tidegate.serving.message_rules import (
    check_continuation,
    check_messages,
    check_template,
    refuse_media,
)
from tidegate.serving.prompt_rules import check_prompt_counts
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.tool_rules import check_deprecated, check_function_call, check_tool_choice, check_tools

R = TypeVar("R", bound=GenerationRequest, contravariant=True)


class Use(Enum):
    """What a field does."""

    ACTS = "acts"
    """It changes what is generated, or what is returned."""
    NO_EFFECT = "no effect"
    """Accepted, and nothing follows from it here."""
    NOT_SERVED = "not served"
    """Accepted only with values that ask for nothing; otherwise 422."""


@dataclass(frozen=True, slots=True)
class FieldRule(Generic[R]):
    """`check` raises InvalidRequest, `refuse` UnsupportedParameter. Both run only where the field is given.

    `reason` says why a field is not served.
    """

    use: Use
    check: Callable[[R, RequestPolicy], None] | None = None
    refuse: Callable[[R], None] | None = None
    reason: str | None = None


def _unserved(param: str, reason: str) -> UnsupportedParameter:
    return UnsupportedParameter(f"{param}: {reason}", param=param)


def _acts(
    check: Callable[[R, RequestPolicy], None] | None = None, refuse: Callable[[R], None] | None = None
) -> FieldRule[R]:
    return FieldRule(Use.ACTS, check, refuse)


def _no_effect() -> FieldRule[GenerationRequest]:
    return FieldRule(Use.NO_EFFECT)


def _not_served(field: str, reason: str, *, but: Callable[[Any], bool] | None = None) -> FieldRule[GenerationRequest]:
    """A row for a field of which only the values that satisfy `but` are accepted."""

    def refuse(request: GenerationRequest) -> None:
        if but is None or not but(getattr(request, field)):
            raise _unserved(field, reason)

    return FieldRule(Use.NOT_SERVED, None, refuse, reason)


def _check_choices(request: GenerationRequest, policy: RequestPolicy) -> None:
    if request.n is not None and request.n > policy.limits.choices:
        raise over_limit("n", "choices", value=policy.limits.choices, actual=request.n)


def _check_stop(request: GenerationRequest, policy: RequestPolicy) -> None:
    stop = request.stop
    strings = [stop] if isinstance(stop, str) else stop or []
    if len(strings) > policy.limits.stop_strings:
        raise over_limit("stop", "stop_strings", value=policy.limits.stop_strings, actual=len(strings))
    if "" in strings:
        raise InvalidValue("stop: a stop string must not be empty", param="stop")


def _check_logit_bias(request: GenerationRequest, policy: RequestPolicy) -> None:
    actual = len(request.logit_bias or {})
    if actual > policy.limits.logit_bias_entries:
        raise over_limit("logit_bias", "logit_bias_entries", value=policy.limits.logit_bias_entries, actual=actual)


def _check_stream_options(request: GenerationRequest, _policy: RequestPolicy) -> None:
    if not request.stream:
        raise InvalidValue("stream_options: only with stream true", param="stream_options")


def _refuse_stream_options(request: GenerationRequest) -> None:
    if request.stream_options is not None and request.stream_options.include_obfuscation:
        raise _unserved("stream_options.include_obfuscation", "obfuscation of chunk sizes is not served")


def _refuse_streamed_prompt_logprobs(request: GenerationRequest) -> None:
    if request.stream:
        raise _unserved("prompt_logprobs", "not served in a stream")


def _check_constraint(request: GenerationRequest, policy: RequestPolicy) -> None:
    check_structured_outputs(request)
    constraint_of(request, policy.limits)


def _check_chat_constraint(request: ChatRequest, policy: RequestPolicy) -> None:
    _check_constraint(request, policy)
    check_beside_tools(request)


def _check_chat_max_tokens(request: ChatRequest, _policy: RequestPolicy) -> None:
    if request.max_tokens == 0:
        raise InvalidValue("max_tokens: must be at least 1", param="max_tokens")


def _check_completion_max_tokens(request: CompletionRequest, _policy: RequestPolicy) -> None:
    if request.max_tokens == 0 and not request.echo:
        raise InvalidValue("max_tokens: must be at least 1, except with echo", param="max_tokens")


def _check_top_logprobs(request: ChatRequest, _policy: RequestPolicy) -> None:
    if not request.logprobs:
        raise InvalidValue("top_logprobs: only with logprobs true", param="top_logprobs")


def _refuse_best_of(request: CompletionRequest) -> None:
    if request.best_of != (request.n or 1):
        raise _unserved("best_of", "only the value of n is served")


def _refuse_suffix(request: CompletionRequest) -> None:
    if request.suffix:
        raise _unserved("suffix", "the served model does not fill in text before a suffix")


GENERATION_RULES: dict[str, FieldRule[GenerationRequest]] = {
    "model": _acts(),
    "n": _acts(_check_choices),
    "temperature": _acts(),
    "top_p": _acts(),
    "presence_penalty": _acts(),
    "frequency_penalty": _acts(),
    "logit_bias": _acts(_check_logit_bias),
    "seed": _acts(),
    "stop": _acts(_check_stop),
    "stream": _acts(),
    "stream_options": _acts(_check_stream_options, _refuse_stream_options),
    "user": _no_effect(),
    "response_format": _acts(_check_constraint),
    "top_k": _acts(),
    "min_p": _acts(),
    "repetition_penalty": _acts(),
    "min_tokens": _acts(),
    "stop_token_ids": _acts(),
    "ignore_eos": _acts(),
    "include_stop_str_in_output": _acts(),
    "skip_special_tokens": _acts(),
    "bad_words": _acts(),
    "allowed_token_ids": _acts(),
    "priority": _acts(),
    "cache_salt": _acts(),
    "return_token_ids": _acts(),
    "prompt_logprobs": _acts(None, _refuse_streamed_prompt_logprobs),
    "structured_outputs": _acts(_check_constraint),
    "deadline_ms": _acts(),
    "first_token_deadline_ms": _acts(),
    "x_script": _acts(),
}
"""Fields that both requests have. `max_tokens` differs between them."""

CHAT_RULES: dict[str, FieldRule[ChatRequest]] = {
    **GENERATION_RULES,
    "messages": _acts(
        lambda request, policy: check_messages(request.messages, policy),
        lambda request: refuse_media(request.messages),
    ),
    "max_tokens": _acts(_check_chat_max_tokens),
    "max_completion_tokens": _acts(),
    "logprobs": _acts(),
    "top_logprobs": _acts(_check_top_logprobs),
    "tools": _acts(lambda request, policy: check_tools(request.tools or [], policy)),
    "tool_choice": _acts(
        lambda request, _policy: check_tool_choice(request.tool_choice or "none", request.tools or [])
    ),
    "parallel_tool_calls": _acts(),
    "response_format": _acts(_check_chat_constraint),
    "structured_outputs": _acts(_check_chat_constraint),
    "reasoning_effort": _acts(),
    "verbosity": _no_effect(),
    "modalities": _not_served("modalities", "only text is served", but=lambda kinds: "audio" not in kinds),
    "audio": _not_served("audio", "only text is served"),
    "prediction": _not_served("prediction", "predicted output is not served"),
    "web_search_options": _not_served("web_search_options", "web search is not served"),
    "service_tier": _not_served(
        "service_tier", "only auto and default are served", but=lambda tier: tier in ("auto", "default")
    ),
    "store": _not_served("store", "completions are not stored", but=lambda is_wanted: not is_wanted),
    "metadata": _no_effect(),
    "moderation": _not_served("moderation", "moderation is not served"),
    "prompt_cache_key": _no_effect(),
    "prompt_cache_options": _no_effect(),
    "prompt_cache_retention": _no_effect(),
    "safety_identifier": _no_effect(),
    "functions": _acts(check_deprecated),
    "function_call": _acts(lambda request, _policy: check_function_call(request)),
    "chat_template": _acts(check_template),
    "chat_template_kwargs": _acts(check_template),
    "add_generation_prompt": _acts(),
    "continue_final_message": _acts(lambda request, _policy: check_continuation(request)),
}

COMPLETION_RULES: dict[str, FieldRule[CompletionRequest]] = {
    **GENERATION_RULES,
    "prompt": _acts(lambda request, policy: check_prompt_counts(request, policy.limits)),
    "max_tokens": _acts(_check_completion_max_tokens),
    "best_of": FieldRule(Use.NOT_SERVED, None, _refuse_best_of, "only the value of n is served"),
    "echo": _acts(),
    "logprobs": _acts(),
    "suffix": FieldRule(Use.NOT_SERVED, None, _refuse_suffix, "the served model does not fill in text before a suffix"),
}

LOST_INPUTS = ("audio_data", "image_data", "input_embeds", "multi_modal_data", "prompt_embeds", "video_data")
"""Fields of other servers that bring input. Ignoring one would answer another question than the caller's."""

REPLACED_FIELDS: dict[str, str] = {
    "ebnf": "structured_outputs",
    "grammar": "structured_outputs",
    "guided_choice": "structured_outputs",
    "guided_decoding_backend": "structured_outputs",
    "guided_grammar": "structured_outputs",
    "guided_json": "structured_outputs",
    "guided_regex": "structured_outputs",
    "guided_whitespace_pattern": "structured_outputs",
    "json_schema": "structured_outputs",
    "regex": "structured_outputs",
    "structural_tag": "structured_outputs",
}
"""Fields of other servers, by what replaces them. Ignoring one would drop a constraint that the caller relies on."""


def check_chat(request: ChatRequest, policy: RequestPolicy) -> None:
    """Raises the first InvalidRequest, else the first UnsupportedParameter, that the fields of `request` deserve."""
    _apply(CHAT_RULES, request, policy)


def check_completion(request: CompletionRequest, policy: RequestPolicy) -> None:
    """As `check_chat`."""
    _apply(COMPLETION_RULES, request, policy)


def _apply(rules: dict[str, FieldRule[R]], request: R, policy: RequestPolicy) -> None:
    given = [rule for field, rule in rules.items() if getattr(request, field) is not None]
    for rule in given:
        if rule.check is not None:
            rule.check(request, policy)
    for rule in given:
        if rule.refuse is not None:
            rule.refuse(request)


def check_replaced_fields(unknown: Iterable[str]) -> None:
    """Raises InvalidValue for the first unknown field that asks for something under another server's name."""
    for name in unknown:
        if name in LOST_INPUTS:
            raise InvalidValue(f"{name}: not a field of this server, which takes text and token ids only", param=name)
        if name in REPLACED_FIELDS:
            raise InvalidValue(f"{name}: not a field of this server; use {REPLACED_FIELDS[name]}", param=name)
        if name in DROPPED_CONDITIONS:
            raise InvalidValue(f"{name}: not a field of this server; use {DROPPED_CONDITIONS[name]}", param=name)
