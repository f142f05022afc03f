"""Every field of a generating request, and what becomes of it. The tables are the rule; a test holds them complete.

A row says how a field is used, what makes it malformed (400, in the order of the table, before any 422), and when it is
well formed but not served (422 `unsupported_parameter`: never silently ignored). Ranges of single numbers stand on the
wire types. What needs the vocabulary or the tokens is checked in `sampling_rules.py` and `prompt_rules.py`.
"""

from collections.abc import Iterable

from tidegate.contract.bounds import over_limit
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.generation import GenerationRequest
from tidegate.errors import InvalidValue
from tidegate.serving.constraint_rules import (
    DROPPED_CONDITIONS,
    check_beside_tools,
    check_structured_outputs,
    constraint_of,
)
from tidegate.serving.field_rule import FieldRule, Use, acts, apply_rules, no_effect, not_served, unserved
from tidegate.serving.message_rules import (
    check_continuation,
    check_messages,
    check_template,
    refuse_media,
)
from tidegate.serving.prompt_rules import check_prompt_counts
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.tool_rules import check_deprecated, check_function_call, check_tool_choice, check_tools


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
        raise unserved("stream_options.include_obfuscation", "obfuscation of chunk sizes is not served")


def _refuse_streamed_prompt_logprobs(request: GenerationRequest) -> None:
    if request.stream:
        raise unserved("prompt_logprobs", "not served in a stream")


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
        raise unserved("best_of", "only the value of n is served")


def _refuse_suffix(request: CompletionRequest) -> None:
    if request.suffix:
        raise unserved("suffix", "the served model does not fill in text before a suffix")


GENERATION_RULES: dict[str, FieldRule[GenerationRequest]] = {
    "model": acts(),
    "n": acts(_check_choices),
    "temperature": acts(),
    "top_p": acts(),
    "presence_penalty": acts(),
    "frequency_penalty": acts(),
    "logit_bias": acts(_check_logit_bias),
    "seed": acts(),
    "stop": acts(_check_stop),
    "stream": acts(),
    "stream_options": acts(_check_stream_options, _refuse_stream_options),
    "user": no_effect(),
    "response_format": acts(_check_constraint),
    "top_k": acts(),
    "min_p": acts(),
    "repetition_penalty": acts(),
    "min_tokens": acts(),
    "stop_token_ids": acts(),
    "ignore_eos": acts(),
    "include_stop_str_in_output": acts(),
    "skip_special_tokens": acts(),
    "bad_words": acts(),
    "allowed_token_ids": acts(),
    "priority": acts(),
    "cache_salt": acts(),
    "return_token_ids": acts(),
    "prompt_logprobs": acts(None, _refuse_streamed_prompt_logprobs),
    "structured_outputs": acts(_check_constraint),
    "deadline_ms": acts(),
    "first_token_deadline_ms": acts(),
    "x_script": acts(),
}
"""Fields that both requests have. `max_tokens` differs between them."""

CHAT_RULES: dict[str, FieldRule[ChatRequest]] = {
    **GENERATION_RULES,
    "messages": acts(
        lambda request, policy: check_messages(request.messages, policy),
        lambda request: refuse_media(request.messages),
    ),
    "max_tokens": acts(_check_chat_max_tokens),
    "max_completion_tokens": acts(),
    "logprobs": acts(),
    "top_logprobs": acts(_check_top_logprobs),
    "tools": acts(lambda request, policy: check_tools(request.tools or [], policy)),
    "tool_choice": acts(lambda request, _policy: check_tool_choice(request.tool_choice or "none", request.tools or [])),
    "parallel_tool_calls": acts(),
    "response_format": acts(_check_chat_constraint),
    "structured_outputs": acts(_check_chat_constraint),
    "reasoning_effort": acts(),
    "verbosity": no_effect(),
    "modalities": not_served("modalities", "only text is served", but=lambda kinds: "audio" not in kinds),
    "audio": not_served("audio", "only text is served"),
    "prediction": not_served("prediction", "predicted output is not served"),
    "web_search_options": not_served("web_search_options", "web search is not served"),
    "service_tier": not_served(
        "service_tier", "only auto and default are served", but=lambda tier: tier in ("auto", "default")
    ),
    "store": not_served("store", "completions are not stored", but=lambda is_wanted: not is_wanted),
    "metadata": no_effect(),
    "moderation": not_served("moderation", "moderation is not served"),
    "prompt_cache_key": no_effect(),
    "prompt_cache_options": no_effect(),
    "prompt_cache_retention": no_effect(),
    "safety_identifier": no_effect(),
    "functions": acts(check_deprecated),
    "function_call": acts(lambda request, _policy: check_function_call(request)),
    "chat_template": acts(check_template),
    "chat_template_kwargs": acts(check_template),
    "add_generation_prompt": acts(),
    "continue_final_message": acts(lambda request, _policy: check_continuation(request)),
}

COMPLETION_RULES: dict[str, FieldRule[CompletionRequest]] = {
    **GENERATION_RULES,
    "prompt": acts(lambda request, policy: check_prompt_counts(request, policy.limits)),
    "max_tokens": acts(_check_completion_max_tokens),
    "best_of": FieldRule(Use.NOT_SERVED, None, _refuse_best_of, "only the value of n is served"),
    "echo": acts(),
    "logprobs": acts(),
    "suffix": FieldRule(Use.NOT_SERVED, None, _refuse_suffix, "the served model does not fill in text before a suffix"),
}

LOST_INPUTS = ("audio_data", "image_data", "input_embeds", "multi_modal_data", "prompt_embeds", "video_data")
"""Fields of other servers that bring input. Ignoring one would answer another question than the caller's."""

REPLACED_FIELDS: dict[str, str] = {
    "activation": "use_activation",
    "ebnf": "structured_outputs",
    "embd_normalize": "normalize",
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
    apply_rules(CHAT_RULES, request, policy)


def check_completion(request: CompletionRequest, policy: RequestPolicy) -> None:
    """As `check_chat`."""
    apply_rules(COMPLETION_RULES, request, policy)


def check_replaced_fields(unknown: Iterable[str]) -> None:
    """Raises InvalidValue for the first unknown field that asks for something under another server's name."""
    for name in unknown:
        if name in LOST_INPUTS:
            raise InvalidValue(f"{name}: not a field of this server, which takes text and token ids only", param=name)
        if name in REPLACED_FIELDS:
            raise InvalidValue(f"{name}: not a field of this server; use {REPLACED_FIELDS[name]}", param=name)
        if name in DROPPED_CONDITIONS:
            raise InvalidValue(f"{name}: not a field of this server; use {DROPPED_CONDITIONS[name]}", param=name)
