"""What the scripted engine shall play for a request: a model that always does what its caller asks for.

It offers what client suites expect of an obliging model: a call when tools are offered, the named one when one is
named, no further call once a tool has answered, JSON that fits when a format is asked for, plain words otherwise. A cue
in the last message of the user, `[[{"say": ...}]]`, decides instead, for tests that need certain words, several calls,
reasoning or a failure.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from example_value import example_value, quoted_words

Call = tuple[str, Any]
"""The name of a tool, and its arguments."""
CUE_OPENING = "[["
PLAIN = "The tide is high at noon, and again at midnight."
PIECE_BYTES = 4
"""Tokens of this size cut characters and markup anywhere, as a model's tokens do."""
DELAY_S = 0.005
"""Between tokens, so that a stream comes in parts; what comes at once may be sent in one."""
TOOL_PARSER = "hermes"
REASONING_PARSER = "qwen3"


@dataclass(frozen=True)
class Performance:
    """`thought` comes first, then `text`, then `calls`. `error_after`: the engine fails after that many tokens."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    thought: str | None = None
    error_after: int | None = None


def choose_script(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `x_script` for the body of a chat request."""
    return written(perform(body), offers_tools=bool(tools_of(body)))


def written(performance: Performance, *, offers_tools: bool) -> dict[str, Any]:
    """Returns the script that plays a performance in hermes markup."""
    text = performance.text
    for name, arguments in performance.calls:
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        text += f"<tool_call>\n{call}\n</tool_call>"
    if performance.thought is not None:
        text = f"<think>\n{performance.thought}\n</think>\n\n{text}"
    data = text.encode()
    script: dict[str, Any] = {
        "pieces": [data[start : start + PIECE_BYTES].hex() for start in range(0, len(data), PIECE_BYTES)],
        "delays_s": [DELAY_S],
    }
    parsers = {"tool": TOOL_PARSER} if offers_tools else {}
    if performance.thought is not None:
        parsers["reasoning"] = REASONING_PARSER
    if parsers:
        script["parsers"] = parsers
    if performance.error_after is not None:
        script["error_after"] = performance.error_after
    return script


def perform(body: Mapping[str, Any]) -> Performance:
    """Decides what an obliging model answers."""
    messages = body.get("messages") or []
    cue = cue_of(messages)
    if cue is not None:
        return as_cued(cue, messages)
    tools = tools_of(body)
    choice = body.get("tool_choice", "auto")
    prompt = last_user_text(messages)
    named = named_tool(choice)
    if tools and choice != "none" and (named or choice == "required" or not has_tool_result(messages)):
        name = named or next_tool(messages, tools)
        return Performance(calls=[(name, example_value(tools.get(name, {"type": "object"}), prompt))])
    schema = wanted_schema(body)
    if schema is not None:
        return Performance(text=json.dumps(example_value(schema, prompt), ensure_ascii=False))
    return Performance(text=PLAIN)


def tools_of(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the schema of the arguments of each offered function, in the order in which they are offered."""
    functions = [tool.get("function", {}) for tool in body.get("tools") or []] + list(body.get("functions") or [])
    return {
        function["name"]: function.get("parameters") or {"type": "object"}
        for function in functions
        if "name" in function
    }


def named_tool(choice: Any) -> str | None:
    return choice.get("function", {}).get("name") if isinstance(choice, Mapping) else None


def next_tool(messages: list[Mapping[str, Any]], tools: Mapping[str, Any]) -> str:
    """Returns the first tool that was not called in this turn; the last one when all were."""
    called = {
        call.get("function", {}).get("name")
        for message in this_turn(messages)
        for call in message.get("tool_calls") or []
    }
    return next((name for name in tools if name not in called), list(tools)[-1])


def this_turn(messages: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the messages after the last one of the user."""
    last = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    return messages[last + 1 :]


def has_tool_result(messages: list[Mapping[str, Any]]) -> bool:
    return any(message.get("role") in ("tool", "function") for message in this_turn(messages))


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    return content or ""


def last_user_text(messages: list[Mapping[str, Any]]) -> str:
    return next((text_of(message) for message in reversed(messages) if message.get("role") == "user"), "")


def cue_of(messages: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Returns the cue in the last message of the user; None where there is none."""
    _, opening, rest = last_user_text(messages).partition(CUE_OPENING)
    return first_object(rest) if opening else None


def as_cued(cue: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> Performance:
    """Returns what a cue asks for; once the tools have answered, its `then`, or what the tools said."""
    if not has_tool_result(messages):
        calls = [(name, arguments) for name, arguments in cue.get("calls", ())]
        return Performance(cue.get("say", ""), calls, cue.get("think"), cue.get("error_after"))
    results = [text_of(message) for message in this_turn(messages) if message.get("role") in ("tool", "function")]
    return Performance(cue.get("then", "The tools said: " + "; ".join(results)))


def wanted_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the schema of the answer: the one of `response_format`; under JSON mode one that the prompt quotes, or
    that has the prompt's quoted words as names.
    """
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return wanted["json_schema"].get("schema") or {}
    if wanted.get("type") == "json_object":
        messages = body.get("messages") or []
        names = quoted_words(last_user_text(messages)) or ["answer"]
        schemas = map(quoted_schema, map(text_of, messages))
        return next((schema for schema in schemas if schema), {"properties": {name: {} for name in names}})
    return None


def quoted_schema(text: str) -> Mapping[str, Any] | None:
    """Returns the first JSON object in a text that describes properties."""
    return first_object(text, lambda value: "properties" in value)


def first_object(text: str, fits: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any] | None:
    """Returns the first JSON object in a text that fits; None where there is none."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        if fits(value):
            return dict(value)
    return None
