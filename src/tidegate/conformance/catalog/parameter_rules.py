"""Parameters as our own contract decides them: which code, which field, which fields are honest."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.parameters import Values, asks_of
from tidegate.conformance.checks.body import has_value
from tidegate.conformance.checks.bounds import is_within, says_text
from tidegate.conformance.checks.errors import is_told
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.probing.capability import Capability

_USER = {"role": "user", "content": "x"}
_OWN = (Capability.CONTRACT,)
Told = tuple[dict[str, Any], str]
"""Fields of a request, and the `param` of its refusal."""


def _telling(
    what: str, title: str, why: str, clause: str, rows: dict[str, Told], status: int = 400, code: str = "invalid_value"
) -> Case:
    """Each of these requests is refused with this status and code, and the field is named."""
    return Case(
        id=f"parameters.{what}",
        title=title,
        why=why,
        clauses=(f"tidegate:{clause}",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=asks_of({name: fields for name, (fields, _) in rows.items()}),
        expects=tuple(
            expect(is_told, name, status=status, code=code, param=param) for name, (_, param) in rows.items()
        ),
    )


def _taking(what: str, title: str, why: str, values: Values) -> Case:
    """Each of these requests is answered, at the one service tier there is."""
    return Case(
        id=f"parameters.{what}",
        title=title,
        why=why,
        clauses=("tidegate:parameters.ranges",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=asks_of(values),
        expects=(
            *(expect(has_status, name, allowed=(200,)) for name in values),
            *(expect(has_value, name, path=("service_tier",), value="default") for name in values),
        ),
    )


_FIELD = "Callers show the field that must be changed; a sentence alone does not say which."

_RANGES: dict[str, Told] = {
    "temperature": ({"temperature": 2.01}, "temperature"),
    "top_p": ({"top_p": 0}, "top_p"),
    "top_k": ({"top_k": -2}, "top_k"),
    "min_p": ({"min_p": 1.1}, "min_p"),
    "repetition_penalty": ({"repetition_penalty": 0}, "repetition_penalty"),
    "repetition_penalty_above": ({"repetition_penalty": 2.01}, "repetition_penalty"),
    "presence_penalty": ({"presence_penalty": 2.01}, "presence_penalty"),
    "n": ({"n": 0}, "n"),
    "empty_stop": ({"stop": ["a", ""]}, "stop"),
    "top_logprobs": ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    "lone_top_logprobs": ({"top_logprobs": 1}, "top_logprobs"),
    "seed": ({"seed": 2**63}, "seed"),
    "bias": ({"logit_bias": {"5": -101}}, "logit_bias"),
    "bias_id": ({"logit_bias": {"99999999": 1}}, "logit_bias"),
    "no_tokens": ({"max_tokens": 0}, "max_tokens"),
    "negative_tokens": ({"max_tokens": -1}, "max_tokens"),
    "no_completion_tokens": ({"max_completion_tokens": 0}, "max_completion_tokens"),
    "stop_token_id": ({"stop_token_ids": [99999999]}, "stop_token_ids"),
    "min_tokens": ({"min_tokens": 5, "max_tokens": 2}, "min_tokens"),
    "priority": ({"priority": 101}, "priority"),
}
_TYPES: dict[str, Told] = {
    "text": ({"temperature": "0.5"}, "temperature"),
    "digits": ({"max_tokens": "5"}, "max_tokens"),
    "boolean": ({"max_tokens": True}, "max_tokens"),
    "boolean_seed": ({"seed": False}, "seed"),
    "boolean_n": ({"n": True}, "n"),
    "fraction": ({"n": 1.5}, "n"),
    "word": ({"stream": "yes"}, "stream"),
    "lone_options": ({"stream_options": {"include_usage": True}}, "stream_options"),
    "format": ({"response_format": {"type": "xml"}}, "response_format.type"),
    "choice": ({"tools": [], "tool_choice": "maybe"}, "tool_choice"),
    "effort": ({"reasoning_effort": "huge"}, "reasoning_effort"),
    "verbosity": ({"verbosity": "huge"}, "verbosity"),
    "metadata": ({"metadata": {"k": 5}}, "metadata"),
}
_MESSAGES: dict[str, Told] = {
    "none": ({"messages": []}, "messages"),
    "role": ({"messages": [_USER, {"role": "wizard", "content": "x"}]}, "messages[1].role"),
    "part": ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "messages[0].content[0].type"),
    "null": ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    "number": ({"messages": [{"role": "system", "content": 5}, _USER]}, "messages[0].content"),
}
_MISSING: dict[str, Told] = {
    "role": ({"messages": [{"content": "x"}]}, "messages[0].role"),
    "content": ({"messages": [{"role": "user"}]}, "messages[0].content"),
    "tool_call_id": ({"messages": [_USER, {"role": "tool", "content": "y"}]}, "messages[1].tool_call_id"),
}
_HOSTED: dict[str, Told] = {
    "store": ({"store": True}, "store"),
    "web_search": ({"web_search_options": {}}, "web_search_options"),
    "prediction": ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
    "moderation": ({"moderation": {"model": "m"}}, "moderation"),
    "audio": ({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}, "modalities"),
    "tier": ({"service_tier": "flex"}, "service_tier"),
}
_REMOVED: dict[str, Any] = {
    "guided_json": {"type": "object"},
    "guided_regex": "a+",
    "guided_choice": ["a", "b"],
    "guided_grammar": 'start: "a"',
}
_TEMPLATE: dict[str, Told] = {
    "template": ({"chat_template": "{{ messages }}"}, "chat_template"),
    "reserved": ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
    "continued": ({"continue_final_message": True, "add_generation_prompt": False}, "continue_final_message"),
    "both": (
        {
            "messages": [_USER, {"role": "assistant", "content": "x"}],
            "continue_final_message": True,
            "add_generation_prompt": True,
        },
        "continue_final_message",
    ),
}

CASES: tuple[Case, ...] = (
    _telling("told_ranges", "A value out of range is told with its field", _FIELD, "parameters.ranges", _RANGES),
    _telling("told_types", "A value of another type is told with its field", _FIELD, "parameters.ranges", _TYPES),
    _telling("told_messages", "What is wrong in a message is told with its path", _FIELD, "errors.codes", _MESSAGES),
    _telling(
        "told_missing",
        "What is missing in a message is told with its path",
        _FIELD,
        "errors.codes",
        _MISSING,
        code="missing_field",
    ),
    _telling(
        "hosted",
        "Features of hosted APIs that are not here are refused, never ignored",
        "The caller relies on a search, a record or a voice that nobody provides.",
        "parameters.hosted",
        _HOSTED,
        status=422,
        code="unsupported_parameter",
    ),
    _telling(
        "template",
        "The template is the model's, and its reserved variables are the server's",
        "A caller who may set them can open turns in another's name.",
        "parameters.template",
        _TEMPLATE,
    ),
    Case(
        id="parameters.removed",
        title="Constraints of removed fields are refused, with the name of the field that works",
        why="Elsewhere they silently do nothing: the caller parses text that was never constrained.",
        clauses=("tidegate:parameters.removed",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=asks_of({name: {name: value} for name, value in _REMOVED.items()}),
        expects=(
            *(expect(is_told, name, status=400, code="invalid_value", param=name) for name in _REMOVED),
            *(expect(says_text, name, text="structured_outputs") for name in _REMOVED),
        ),
    ),
    Case(
        id="parameters.completion_rules",
        title="Completions refuse best_of other than n, no tokens without echo, and ids outside the vocabulary",
        why="Each would cost tokens that nobody sees, or read memory that is not there.",
        clauses=("tidegate:parameters.ranges",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=(
            Ask(name="best_of", path="/completions", body=completion_body(max_tokens=1, best_of=3)),
            Ask(name="no_tokens", path="/completions", body=completion_body(max_tokens=0)),
            Ask(name="echoed", path="/completions", body=completion_body(max_tokens=0, echo=True)),
            Ask(name="foreign_id", path="/completions", body=completion_body([2**31], max_tokens=1)),
            Ask(name="logprobs", path="/completions", body=completion_body(max_tokens=1, logprobs=6)),
        ),
        expects=(
            expect(is_told, "best_of", status=422, code="unsupported_parameter", param="best_of"),
            expect(is_told, "no_tokens", status=400, code="invalid_value", param="max_tokens"),
            expect(has_status, "echoed", allowed=(200,)),
            expect(is_told, "foreign_id", status=400, code="invalid_value"),
            expect(is_told, "logprobs", status=400, code="invalid_value", param="logprobs"),
        ),
    ),
    Case(
        id="parameters.both_bounds",
        title="max_completion_tokens wins over max_tokens",
        why="Clients that send both mean the newer one, and pay for the difference.",
        clauses=("tidegate:parameters.ranges",),
        severity=Severity.WRONG_BILL,
        profile=Profile.TIDEGATE,
        needs=_OWN,
        asks=(
            Ask(name="less", body=chat_body(max_tokens=16, max_completion_tokens=2)),
            Ask(name="more", body=chat_body(max_tokens=1, max_completion_tokens=3, ignore_eos=True)),
        ),
        expects=(
            expect(has_status, "less", allowed=(200,)),
            expect(is_within, "less", num_tokens=2),
            expect(has_value, "more", path=("usage", "completion_tokens"), value=3),
        ),
    ),
    _taking(
        "own_edges",
        "Our own parameters are taken on their edges",
        "A range that excludes its ends refuses what the documentation allows.",
        {
            "top_k_off": {"top_k": 0},
            "top_k_minus": {"top_k": -1},
            "least": {"min_p": 0, "repetition_penalty": 0.01},
            "most": {"min_p": 1, "repetition_penalty": 2},
            "priority": {"priority": -100},
            "min_tokens": {"min_tokens": 1},
        },
    ),
    _taking(
        "no_effect",
        "Fields that change nothing are taken, and the tier is told",
        "Frameworks send them with every request.",
        {
            "named": {"user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "metadata": {"a": "b"}},
            "tier": {"service_tier": "default"},
            "verbosity": {"verbosity": "low", "store": False},
            "no_tools": {"tools": []},
        },
    ),
)
