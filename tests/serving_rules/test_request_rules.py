"""Every field of both requests has a row, and each row does what it says."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat, decode_completion
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.error_table import error_answer
from tidegate.contract.unknown_fields import unknown_fields
from tidegate.errors import InvalidRequest, InvalidValue, ServeError, UnsupportedParameter
from tidegate.serving.field_rule import Use
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.request_rules import (
    CHAT_RULES,
    COMPLETION_RULES,
    REPLACED_FIELDS,
    check_chat,
    check_completion,
    check_replaced_fields,
)

USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "so"}
CHAT: dict[str, Any] = {"model": "m", "messages": [USER]}
COMPLETION: dict[str, Any] = {"model": "m", "prompt": "a"}
TOOL = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
CUSTOM = {"type": "custom", "custom": {"name": "free"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


def apply_chat(policy: RequestPolicy | None = None, **members: Any) -> None:
    body = json.dumps({**CHAT, **members}).encode()
    check_chat(decode_chat(body, Limits()), policy or RequestPolicy())


def apply_completion(policy: RequestPolicy | None = None, **members: Any) -> None:
    body = json.dumps({**COMPLETION, **members}).encode()
    check_completion(decode_completion(body, Limits()), policy or RequestPolicy())


APPLY = {"chat": apply_chat, "completion": apply_completion}


def words(text: str) -> list[str]:
    return text.split()


# The public API's own fields, from its specification (openai-openapi 2.3.0), and this contract's extensions.
OPENAI_CHAT = words(
    """messages model frequency_penalty presence_penalty logit_bias logprobs top_logprobs
    max_completion_tokens max_tokens n stop seed temperature top_p stream stream_options tools tool_choice
    parallel_tool_calls response_format reasoning_effort verbosity modalities audio prediction web_search_options
    service_tier store metadata moderation prompt_cache_key prompt_cache_options prompt_cache_retention
    safety_identifier user functions function_call"""
)
OPENAI_COMPLETION = words(
    """model prompt best_of echo frequency_penalty presence_penalty logit_bias logprobs max_tokens n
    seed stop stream stream_options suffix temperature top_p user"""
)
SHARED_EXTENSIONS = words(
    """top_k min_p repetition_penalty min_tokens stop_token_ids ignore_eos include_stop_str_in_output
    skip_special_tokens bad_words allowed_token_ids priority cache_salt return_token_ids prompt_logprobs
    structured_outputs deadline_ms first_token_deadline_ms x_script"""
)
CHAT_EXTENSIONS = words("chat_template chat_template_kwargs add_generation_prompt continue_final_message")


def test_the_chat_request_has_all_public_fields_and_our_extensions_and_nothing_else() -> None:
    assert set(ChatRequest.__struct_fields__) == {*OPENAI_CHAT, *SHARED_EXTENSIONS, *CHAT_EXTENSIONS}


def test_the_completion_request_has_all_public_fields_and_our_extensions_and_nothing_else() -> None:
    assert set(CompletionRequest.__struct_fields__) == {*OPENAI_COMPLETION, *SHARED_EXTENSIONS, "response_format"}


def test_every_field_has_exactly_one_row() -> None:
    assert set(CHAT_RULES) == set(ChatRequest.__struct_fields__)
    assert set(COMPLETION_RULES) == set(CompletionRequest.__struct_fields__)


def test_only_what_is_not_served_or_acts_is_ever_refused() -> None:
    for rules in (CHAT_RULES, COMPLETION_RULES):
        for field, rule in rules.items():
            assert (rule.use is Use.NOT_SERVED) <= (rule.refuse is not None), field
            assert (rule.use is Use.NO_EFFECT) <= (rule.refuse is None and rule.check is None), field


NULLS = [("chat", name) for name in ChatRequest.__struct_fields__ if name not in CHAT] + [
    ("completion", name) for name in CompletionRequest.__struct_fields__ if name not in COMPLETION
]


@pytest.mark.parametrize(("route", "field"), NULLS)
def test_null_means_absent(route: str, field: str) -> None:
    APPLY[route](**{field: None})


def test_all_nulls_together_are_nothing() -> None:
    apply_chat(**{name: None for route, name in NULLS if route == "chat"})


def schema_tool(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"user": "u1", "store": False, "metadata": {"a": "b"}, "service_tier": "auto"}),
    ("chat", {"service_tier": "default", "safety_identifier": "s", "prompt_cache_key": "k", "verbosity": "low"}),
    ("chat", {"prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}}),
    ("chat", {"parallel_tool_calls": False, "tools": [], "tool_choice": "none"}),
    ("chat", {"tool_choice": "none"}),
    ("chat", {"tool_choice": "auto"}),
    ("chat", {"functions": [], "function_call": "none"}),
    ("chat", {"functions": [{"name": "f"}], "function_call": {"name": "f"}}),
    (
        "chat",
        {"tools": [TOOL, schema_tool({}), schema_tool({"type": ["object", "null"]})][:2], "tool_choice": "required"},
    ),
    ("chat", {"tools": [CUSTOM], "tool_choice": {"type": "custom", "custom": {"name": "free"}}}),
    ("chat", {"response_format": {"type": "text"}}),
    ("chat", {"modalities": ["text"], "reasoning_effort": "none"}),
    ("chat", {"stop": []}),
    ("chat", {"stop": ["a", "b", "c", "d"]}),
    ("chat", {"n": 128}),
    ("chat", {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}),
    ("chat", {"stream": True, "stream_options": {"continuous_usage_stats": True}}),
    ("chat", {"logprobs": True, "top_logprobs": 20}),
    ("chat", {"prompt_logprobs": 20}),
    ("chat", {"max_tokens": 50, "max_completion_tokens": 3}),
    ("chat", {"messages": [USER, ASSISTANT], "continue_final_message": True}),
    ("chat", {"messages": [USER, ASSISTANT], "continue_final_message": True, "add_generation_prompt": False}),
    ("chat", {"add_generation_prompt": True, "chat_template_kwargs": {"enable_thinking": False}}),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}),
    ("chat", {"messages": [{"role": "developer", "content": "a"}, {"role": "system", "content": "b"}, USER]}),
    ("completion", {"echo": True, "max_tokens": 0}),
    ("completion", {"best_of": 1, "suffix": ""}),
    ("completion", {"n": 3, "best_of": 3}),
    ("completion", {"prompt": ["a"] * 256}),
    ("completion", {"prompt": ["a", "b"], "n": 64}),
    ("completion", {"prompt": [1] * 5000, "n": 128}),
    ("completion", {"logprobs": 5, "echo": True, "stream": True}),
]


@pytest.mark.parametrize(("route", "members"), ACCEPTED)
def test_what_asks_for_nothing_special_is_accepted(route: str, members: dict[str, Any]) -> None:
    APPLY[route](**members)


CALL = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
HISTORIES: list[list[dict[str, Any]]] = [
    [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    [USER, {"role": "assistant", "tool_calls": [CALL]}],
    [USER, {"role": "assistant", "content": "x", "tool_calls": []}],
    [USER, {"role": "assistant", "content": None, "reasoning_content": "because", "tool_calls": [CALL]}],
    [USER, {"role": "assistant", "content": "x", "reasoning": "because"}],
    [USER, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}],
    [USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
    [USER, {"role": "assistant", "content": None, "refusal": "no"}],
    [USER, {"role": "function", "name": "f", "content": None}],
    [USER, {"role": "assistant", "content": "x", "annotations": [], "unknown": 1}],
]


@pytest.mark.parametrize("messages", HISTORIES)
def test_the_turns_that_clients_replay_are_accepted(messages: list[dict[str, Any]]) -> None:
    apply_chat(messages=messages)


MALFORMED: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("chat", {"n": 129}, "n", "choices"),
    ("chat", {"n": 10**9}, "n", "choices"),
    ("chat", {"stop": ""}, "stop", None),
    ("chat", {"stop": [""]}, "stop", None),
    ("chat", {"stop": ["a", ""]}, "stop", None),
    ("chat", {"stop": ["a", "b", "c", "d", "e"]}, "stop", "stop_strings"),
    ("chat", {"logit_bias": {str(i): 1 for i in range(1025)}}, "logit_bias", "logit_bias_entries"),
    ("chat", {"max_tokens": 0}, "max_tokens", None),
    ("chat", {"max_tokens": 0, "max_completion_tokens": 5}, "max_tokens", None),
    ("chat", {"top_logprobs": 1}, "top_logprobs", None),
    ("chat", {"top_logprobs": 1, "logprobs": False}, "top_logprobs", None),
    ("chat", {"stream_options": {"include_usage": True}}, "stream_options", None),
    ("chat", {"stream_options": {}, "stream": False}, "stream_options", None),
    ("chat", {"structured_outputs": {}}, "structured_outputs", None),
    ("chat", {"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", None),
    ("chat", {"messages": [USER] * 4097}, "messages", "messages"),
    ("chat", {"messages": [USER, {"role": "assistant"}]}, "messages[1].content", None),
    ("chat", {"messages": [USER, {"role": "assistant", "content": None}]}, "messages[1].content", None),
    ("chat", {"messages": [USER, {"role": "assistant", "tool_calls": []}]}, "messages[1].content", None),
    ("chat", {"tools": [{**TOOL}] * 2}, "tools[1].function.name", None),
    ("chat", {"tools": [TOOL, CUSTOM, CUSTOM]}, "tools[2].custom.name", None),
    ("chat", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "nope"}}}, "tool_choice", None),
    ("chat", {"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "ping"}}}, "tool_choice", None),
    ("chat", {"tool_choice": "required"}, "tool_choice", None),
    ("chat", {"tools": [schema_tool({"type": "string"})]}, "tools[0].function.parameters.type", None),
    ("chat", {"tools": [schema_tool({"properties": []})]}, "tools[0].function.parameters.properties", None),
    ("chat", {"tools": [schema_tool({"properties": {"a": 1}})]}, "tools[0].function.parameters.properties.a", None),
    ("chat", {"tools": [schema_tool({"required": "a"})]}, "tools[0].function.parameters.required", None),
    (
        "chat",
        {"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "x"}}}]},
        "tools[0].custom.format.type",
        None,
    ),
    ("chat", {"functions": [{"name": "f"}], "tools": [TOOL]}, "functions", None),
    ("chat", {"functions": [{"name": "f"}, {"name": "f"}]}, "functions[1].name", None),
    ("chat", {"functions": [{"name": "f", "parameters": {"type": "array"}}]}, "functions[0].parameters.type", None),
    ("chat", {"functions": [{"name": "f"}], "function_call": {"name": "g"}}, "function_call", None),
    ("chat", {"function_call": {"name": "g"}}, "function_call", None),
    ("chat", {"tools": [], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", None),
    ("chat", {"continue_final_message": True}, "continue_final_message", None),
    (
        "chat",
        {"messages": [USER, ASSISTANT], "continue_final_message": True, "add_generation_prompt": True},
        "continue_final_message",
        None,
    ),
    (
        "chat",
        {"messages": [USER, {"role": "assistant", "tool_calls": [CALL]}], "continue_final_message": True},
        "continue_final_message",
        None,
    ),
    ("chat", {"chat_template": "{{ messages }}"}, "chat_template", None),
    ("chat", {"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs", None),
    ("chat", {"chat_template_kwargs": {"ok": 1, "tokenize": False}}, "chat_template_kwargs", None),
    ("completion", {"max_tokens": 0}, "max_tokens", None),
    ("completion", {"max_tokens": 0, "echo": False}, "max_tokens", None),
    ("completion", {"prompt": ["a"] * 257}, "prompt", "prompts"),
    ("completion", {"prompt": ["a"] * 100_000}, "prompt", "prompts"),
    ("completion", {"prompt": [[1]] * 257}, "prompt", "prompts"),
    ("completion", {"prompt": ["a", "b"], "n": 65}, "n", "choices"),
    ("completion", {"prompt": ["a"] * 129, "n": 2}, "n", "choices"),
    ("completion", {"n": 129}, "n", "choices"),
    ("completion", {"stop": [""]}, "stop", None),
]


@pytest.mark.parametrize(("route", "members", "param", "limit"), MALFORMED)
def test_what_is_malformed_is_400_with_its_field(
    route: str, members: dict[str, Any], param: str, limit: str | None
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        APPLY[route](**members)
    error = json.loads(error_answer(raised.value).body)["error"]
    assert error["param"] == param
    assert error.get("limit", {}).get("name") == limit


def test_tools_are_bounded_in_number_and_in_bytes() -> None:
    def tool(index: int, text: str = "") -> dict[str, Any]:
        return {"type": "function", "function": {"name": f"f{index}", "description": text}}

    for tools, name in (([tool(i) for i in range(129)], "tools"), ([tool(0, "x" * 262_144)], "tool_bytes")):
        with pytest.raises(InvalidValue) as raised:
            apply_chat(tools=tools)
        assert raised.value.limit is not None
        assert raised.value.limit.name == name


def test_a_cap_may_be_lowered_and_is_named() -> None:
    with pytest.raises(InvalidValue) as raised:
        apply_chat(RequestPolicy(limits=Limits(choices=4)), n=5)
    limit = raised.value.limit
    assert limit is not None
    assert (limit.name, limit.value, limit.actual, limit.scope) == ("choices", 4, 5, "request")


def image(url: str) -> list[dict[str, Any]]:
    part = {"type": "image_url", "image_url": {"url": url}}
    return [USER, {"role": "user", "content": [{"type": "text", "text": "see"}, part]}]


AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]
FILE = [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]
UNSERVED: list[tuple[str, dict[str, Any], str]] = [
    ("chat", {"messages": image("http://169.254.169.254/latest/meta-data/")}, "messages[1].content[1]"),
    ("chat", {"messages": image("data:image/png;base64," + "A" * 4_000_000)}, "messages[1].content[1]"),
    ("chat", {"messages": AUDIO}, "messages[0].content[0]"),
    ("chat", {"messages": FILE}, "messages[0].content[0]"),
    ("chat", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages[0].audio"),
    ("chat", {"store": True}, "store"),
    ("chat", {"web_search_options": {}}, "web_search_options"),
    ("chat", {"prediction": {"type": "content", "content": "x"}}, "prediction"),
    ("chat", {"moderation": {"model": "m"}}, "moderation"),
    ("chat", {"modalities": ["text", "audio"]}, "modalities"),
    ("chat", {"audio": {"voice": "v", "format": "wav"}}, "audio"),
    ("chat", {"service_tier": "flex"}, "service_tier"),
    ("chat", {"service_tier": "priority"}, "service_tier"),
    ("chat", {"prompt_logprobs": 0, "stream": True}, "prompt_logprobs"),
    ("chat", {"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    ("completion", {"suffix": "end"}, "suffix"),
    ("completion", {"best_of": 2}, "best_of"),
    ("completion", {"best_of": 1, "n": 2}, "best_of"),
]


@pytest.mark.parametrize(("route", "members", "param"), UNSERVED)
def test_what_is_well_formed_but_not_served_is_422_with_its_field(
    route: str, members: dict[str, Any], param: str
) -> None:
    with pytest.raises(UnsupportedParameter) as raised:
        APPLY[route](**members)
    answer = error_answer(raised.value)
    assert answer.status == 422
    assert json.loads(answer.body)["error"]["param"] == param
    assert len(answer.body) < 4096


def test_every_field_that_is_not_served_is_refused_by_some_case() -> None:
    for route, rules in (("chat", CHAT_RULES), ("completion", COMPLETION_RULES)):
        not_served = {field for field, rule in rules.items() if rule.use is Use.NOT_SERVED}
        shown = {param for case_route, _, param in UNSERVED if case_route in (route, "chat")}
        assert not_served <= shown


@pytest.mark.parametrize("also_unserved", [{"store": True}, {"web_search_options": {}}, {"prediction": {}}])
def test_malformed_is_said_before_unserved(also_unserved: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        apply_chat(**also_unserved, stop="", continue_final_message=True)


def test_an_operator_may_allow_templates_and_reserve_names() -> None:
    policy = RequestPolicy(allows_chat_template=True, reserved_template_names=frozenset({"mine"}))
    apply_chat(policy, chat_template="{{ messages }}", chat_template_kwargs={"tokenize": 1})
    with pytest.raises(InvalidValue):
        apply_chat(policy, chat_template_kwargs={"mine": 1})


@pytest.mark.parametrize("field", REPLACED_FIELDS)
def test_a_field_of_another_server_that_constrains_output_is_400_and_names_ours(field: str) -> None:
    body = json.dumps({**CHAT, field: {"type": "object"}}).encode()
    with pytest.raises(InvalidValue) as raised:
        check_replaced_fields(unknown_fields(body, ChatRequest, Limits()))
    assert raised.value.param == field
    assert REPLACED_FIELDS[field] in raised.value.message


def test_no_field_of_ours_is_called_replaced() -> None:
    assert not set(REPLACED_FIELDS) & {*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__}
    check_replaced_fields(["temprature"])


EXTREMES = [0, -1, 1, 2**31, 2**63 - 1, -(2**63), 2**64, 1e308, -1e308, 0.5, "", "x", True, [], {}, [1], {"a": 1}]


@pytest.mark.parametrize(("route", "field"), NULLS)
def test_no_value_of_any_field_ends_in_anything_but_an_answer(route: str, field: str) -> None:
    for value in EXTREMES:
        try:
            APPLY[route](**{field: value})
        except ServeError as error:
            assert error_answer(error).status in (400, 422)  # noqa: PT017
