"""Types of parameters and messages: what a field may be, and what it may not."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.catalog.parameters import FAULTY, Values, asks_of
from tidegate.conformance.checks.errors import is_refused
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT,)
_USER = {"role": "user", "content": "x"}


def _refusing(
    what: str,
    title: str,
    why: str,
    clause: str,
    values: Values,
    severity: Severity = Severity.NUISANCE,
    needs: tuple[Capability, ...] = _CHAT,
) -> Case:
    """Each of these requests is wrong, and must be refused."""
    path = "/completions" if Capability.COMPLETIONS in needs else "/chat/completions"
    return Case(
        id=f"parameters.{what}",
        title=title,
        why=why,
        clauses=(f"openai:{clause}", "openai:errors.blame"),
        severity=severity,
        needs=needs,
        asks=asks_of(values, path),
        expects=tuple(expect(is_refused, name, allowed=FAULTY) for name in values),
    )


def _with_messages(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


def _raw(field: str, number: str) -> bytes:
    head = b'{"model": "{model}", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}], '
    return head + f'"{field}": {number}}}'.encode()


_NUMBERS = {
    "nan": _raw("temperature", "NaN"),
    "infinity": _raw("temperature", "Infinity"),
    "minus_infinity": _raw("presence_penalty", "-Infinity"),
    "overflow": _raw("temperature", "1e999"),
    "bias_nan": _raw("logit_bias", '{"50": NaN}'),
    "digits": _raw("temperature", "9" * 5000),
    "huge_n": _raw("n", "1e300"),
}
_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


_TYPES = (
    _refusing(
        "text_for_number",
        "A text is no number",
        '`"0.5"` is read by one server and dropped by the next.',
        "parameters.type",
        {"float": {"temperature": "a lot"}, "integer": {"max_tokens": "few"}, "object": {"top_p": {}}},
        Severity.WRONG_DATA,
    ),
    _refusing(
        "fraction_for_integer",
        "A number with a fraction is no integer",
        "Half a token is rounded down by one server and up by the next.",
        "parameters.type",
        {"max_tokens": {"max_tokens": 1.5}, "n": {"n": 1.5}, "seed": {"seed": 0.5}},
    ),
    _refusing(
        "number_for_boolean",
        "A number or a text is no boolean",
        '`"false"` is true in half of all languages.',
        "parameters.type",
        {"text": {"stream": "no way"}, "list": {"stream": []}, "object": {"logprobs": {}}},
    ),
    _refusing(
        "stop_kinds",
        "stop is a text or texts",
        "A stop that is dropped lets the answer run on.",
        "parameters.type",
        {"number": {"stop": 5}, "numbers": {"stop": [5]}, "nested": {"stop": [["a"]]}, "object": {"stop": {}}},
        Severity.WRONG_DATA,
    ),
    _refusing(
        "bias_kinds",
        "logit_bias maps token ids to numbers",
        "A bias that is dropped lets banned words through.",
        "parameters.type",
        {
            "list": {"logit_bias": [50]},
            "text_value": {"logit_bias": {"50": "much"}},
            "word": {"logit_bias": {"word": 1}},
            "negative_id": {"logit_bias": {"-1": 1}},
        },
        needs=(Capability.CHAT, Capability.LOGIT_BIAS),
    ),
    _refusing(
        "completion_prompts",
        "A prompt is a text, token ids, or a list of either",
        "A prompt of another kind is spelled out, and the model answers to `{'a': 1}`.",
        "parameters.type",
        {
            "object": {"prompt": {"a": 1}},
            "number": {"prompt": 5},
            "fraction": {"prompt": [1.5]},
            "negative_id": {"prompt": [-1]},
        },
        Severity.WRONG_DATA,
        (Capability.COMPLETIONS,),
    ),
    Case(
        id="parameters.no_numbers",
        title="NaN, Infinity and numbers that fit nowhere are refused",
        why="NaN in the sampler makes garbage of this answer, and on some servers of its neighbours'.",
        clauses=("openai:json.text", "openai:parameters.range", "openai:errors.blame"),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=tuple(Ask(name=name, raw=raw) for name, raw in _NUMBERS.items()),
        expects=tuple(expect(is_refused, name, allowed=FAULTY) for name in _NUMBERS),
    ),
)

_UNIONS = (
    _refusing(
        "response_format_kind",
        "A response_format of an unknown type is refused",
        "The caller parses JSON that was never promised.",
        "parameters.unions",
        {
            "unknown": {"response_format": {"type": "xml"}},
            "text": {"response_format": "json"},
            "no_type": {"response_format": {"schema": {}}},
            "no_schema": {"response_format": {"type": "json_schema"}},
        },
        Severity.WRONG_DATA,
    ),
    _refusing(
        "tool_choice_kind",
        "A tool_choice that is none is refused",
        "A forced call is not made, and the caller waits for it.",
        "parameters.unions",
        {
            "word": {"tools": _TOOLS, "tool_choice": "maybe"},
            "absent_tool": {
                "tools": _TOOLS,
                "tool_choice": {"type": "function", "function": {"name": "not_offered"}},
            },
        },
        needs=(Capability.CHAT, Capability.TOOLS),
    ),
    _refusing(
        "roles",
        "A message of an unknown role, or of none, is refused",
        "The template drops it, and the model never sees what it said.",
        "parameters.messages",
        {
            "unknown": _with_messages({"role": "wizard", "content": "x"}),
            "none": _with_messages({"content": "x"}),
            "number": _with_messages({"role": 5, "content": "x"}),
        },
        Severity.WRONG_DATA,
    ),
    _refusing(
        "no_messages",
        "A conversation has at least one message, and a list of them",
        "The model answers to nothing, and the caller is billed.",
        "parameters.messages",
        {
            "none": {"messages": []},
            "object": {"messages": {"role": "user", "content": "x"}},
            "texts": {"messages": ["x"]},
            "null": {"messages": None},
        },
    ),
    _refusing(
        "no_content",
        "A user's message has content",
        "A missing text is rendered as the word None, or as nothing.",
        "parameters.messages",
        {
            "absent": _with_messages({"role": "user"}),
            "number": _with_messages({"role": "user", "content": 5}),
            "object": _with_messages({"role": "user", "content": {"text": "x"}}),
        },
        Severity.WRONG_DATA,
    ),
    _refusing(
        "part_kinds",
        "A part of content of an unknown kind is refused",
        "A picture or a file that is dropped is missed by nobody until the answer is wrong.",
        "parameters.unions",
        {
            "unknown": _with_messages({"role": "user", "content": [{"type": "hologram", "hologram": "x"}]}),
            "no_type": _with_messages({"role": "user", "content": [{"text": "x"}]}),
            "no_text": _with_messages({"role": "user", "content": [{"type": "text"}]}),
        },
        Severity.WRONG_DATA,
    ),
    _refusing(
        "tool_message",
        "A tool's message says which call it answers",
        "With two calls the model takes one answer for the other.",
        "parameters.messages",
        {"no_id": _with_messages(_USER, {"role": "tool", "content": "y"})},
    ),
    _refusing(
        "metadata_bounds",
        "metadata beyond its bounds is refused",
        "What is cut off is missed when it is searched for.",
        "parameters.metadata",
        {
            "pairs": {"metadata": {str(number): "v" for number in range(17)}},
            "key": {"metadata": {"k" * 65: "v"}},
            "value": {"metadata": {"k": "v" * 513}},
            "number": {"metadata": {"k": 5}},
        },
    ),
)

_LONE = (
    _refusing(
        "lone_top_logprobs",
        "top_logprobs without logprobs is refused",
        "The caller waits for logprobs that never come.",
        "parameters.range",
        {"absent": {"top_logprobs": 2}, "false": {"logprobs": False, "top_logprobs": 2}},
        needs=(Capability.CHAT, Capability.LOGPROBS),
    ),
    _refusing(
        "lone_stream_options",
        "stream_options without stream is refused",
        "It tells a caller who forgot `stream: true`.",
        "parameters.stream_options",
        {"absent": {"stream_options": {"include_usage": True}}},
    ),
)

CASES: tuple[Case, ...] = (*_TYPES, *_UNIONS, *_LONE)
