"""Tools for models whose chat template shows none: described in the system message, with an example of a call.

Decides by what the template was seen to do. Calls and their results in the conversation's past, which such a template
would leave out, are written as text of the assistant and of the user.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.contract.codec import encode_json
from tidegate.errors import UnsupportedParameter
from tidegate.parsers.tool_format import ToolFormat
from tidegate.serving.tool_use import ToolUse
from tidegate.text.template_messages import TemplateCapabilities

Message = dict[str, Any]


def messages_with_tools(
    messages: Sequence[Message], use: ToolUse, form: ToolFormat, capabilities: TemplateCapabilities
) -> list[Message]:
    """Returns the conversation with its tools in a system message.

    Raises UnsupportedParameter where the template has no place for one either.
    """
    if not capabilities.supports_system:
        param = "functions" if use.is_legacy else "tools"
        message = (
            f"{param}: this model's chat template has no place for tools, nor for a system message that tells of them"
        )
        raise UnsupportedParameter(message, param=param)
    told = [_plain(message) for message in messages]
    text = describe_tools(use, form)
    first = told[0] if told else {}
    if first.get("role") not in ("system", "developer"):
        return [{"role": "system", "content": text}, *told]
    content = first.get("content")
    if isinstance(content, list):
        return [{**first, "content": [*content, {"type": "text", "text": text}]}, *told[1:]]
    return [{**first, "content": f"{content}\n\n{text}" if content else text}, *told[1:]]


def describe_tools(use: ToolUse, form: ToolFormat) -> str:
    """Returns what a model is told of its tools: one a line, and how a call is written."""
    lines = [encode_json(tool.to_template()["function"]).decode() for tool in use.shown]
    how = "Call one of them." if use.must_place else "Call one where it helps; otherwise answer in plain text."
    many = "" if use.allows_many else " Make one call only."
    return "\n".join(
        (
            "You have these functions. Each line is one, its parameters as a JSON Schema:",
            *lines,
            f'{how}{many} A call is written like this one, of a function tide_at with "Brest" as port, alone:',
            form.example,
        )
    )


def _plain(message: Message) -> Message:
    """Returns a message of the past without calls and without the role of a tool."""
    if message.get("role") in ("tool", "function"):
        name = message.get("name") or message.get("tool_call_id") or ""
        return {"role": "user", "content": f"Result of {name}:\n{_text(message.get('content'))}"}
    calls = list(message.get("tool_calls") or ())
    if isinstance(message.get("function_call"), Mapping):
        calls.append({"function": message["function_call"]})
    if not calls:
        return message
    kept = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    written = [_written(call) for call in calls]
    return {**kept, "content": "\n".join(filter(None, (_text(message.get("content")), *written)))}


def _written(call: Mapping[str, Any]) -> str:
    """Returns one call as JSON; arguments stay in the characters they came in."""
    custom = call.get("custom")
    if isinstance(custom, Mapping):
        name, arguments = custom["name"], encode_json({"input": custom["input"]}).decode()
    else:
        name, arguments = call["function"]["name"], call["function"]["arguments"] or "{}"
    return f'{{"name": {encode_json(name).decode()}, "arguments": {arguments}}}'


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""
