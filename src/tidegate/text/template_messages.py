"""From messages as the API has them to messages as a chat template wants them.

Decides, by what the template can do: which role a message gets, whether content is text or a list of parts, whether
tool arguments are a mapping or text, where reasoning goes. Absent, null and empty are one thing here, so no template
ever sees a None that it could print. Does not know the template's source, tokens, or HTTP.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tidegate.errors import InvalidTemplateInput, InvalidValue, UnsupportedParameter
from tidegate.text.template_history import CallIds, arrange_history
from tidegate.text.thinking_switch import ThinkingSwitch

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "thinking", "thought", "tool_plan", "part"]
"""A member of the message; or a part of its content, of type `thinking`."""

ArgumentValues: TypeAlias = Literal["own", "json", "escaped"]
"""How values in a mapping of arguments go in: as they are; those that are no strings as JSON text, for templates that
would print them as Python does; strings as the inside of a JSON string, for templates that put them between quotes."""

_PART_TEXT_FIELDS = {"text": "text", "refusal": "refusal"}


@dataclass(frozen=True, slots=True)
class TemplateCapabilities:
    """What a template was seen to do.

    `list_roles` take content as a list of parts; of these `only_list_roles` take nothing else. `drops_system`: system
    messages vanish from the prompt without a word.
    """

    list_roles: frozenset[str] = frozenset()
    only_list_roles: frozenset[str] = frozenset()
    knows_developer: bool = False
    supports_system: bool = True
    drops_system: bool = False
    supports_tools: bool = False
    wants_argument_text: bool = False
    argument_values: ArgumentValues = "own"
    call_ids: CallIds = "any"
    single_calls: bool = False
    """A turn holds one call; of several the template refuses, or leaves out, all but the first."""
    calls_need_parts: bool = False
    """A turn with calls and no text needs a list of parts as its content."""
    reasoning_field: ReasoningField | None = None
    """Where the template looks for the reasoning of earlier turns; None: it shows none."""
    thinking_switch: ThinkingSwitch | None = None
    """The variable that switches thinking on and off; None: the template has none."""
    reasoning_excludes_content: bool = False
    """A turn with calls may have reasoning or content, not both."""


def prepare_messages(
    messages: Sequence[Mapping[str, object]], capabilities: TemplateCapabilities
) -> list[dict[str, object]]:
    """Returns the template's messages; the input stays as it is.

    Raises InvalidValue for contents and arguments of a wrong shape, UnsupportedParameter for parts that are not text,
    InvalidTemplateInput for a system message that this template would drop. `param` names the place.
    """
    arranged = arrange_history(messages, call_ids=capabilities.call_ids, single_calls=capabilities.single_calls)
    return [_prepare(message, f"messages[{index}]", capabilities) for index, message in arranged]


def _prepare(message: Mapping[str, object], path: str, capabilities: TemplateCapabilities) -> dict[str, object]:
    prepared = {key: value for key, value in message.items() if value is not None}
    role = _role(message.get("role"), path, capabilities)
    prepared["role"] = role
    content = message.get("content")
    if content is None and role == "assistant":
        content = prepared.pop("refusal", None)
    prepared["content"] = _content(content, role, path, capabilities)
    calls = _tool_calls(message, path, capabilities)
    if calls:
        prepared["tool_calls"] = calls
        if capabilities.calls_need_parts and prepared["content"] in ("", []):
            prepared["content"] = [{"type": "text", "text": ""}]
    else:
        prepared.pop("tool_calls", None)
    if role == "assistant":
        _place_reasoning(prepared, capabilities)
    return prepared


def _place_reasoning(message: dict[str, object], capabilities: TemplateCapabilities) -> None:
    """Puts the turn's reasoning where the template looks for it. It never becomes visible text of the turn."""
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(reasoning, str) or not reasoning:
        return
    message["reasoning_content"] = reasoning
    where, content = capabilities.reasoning_field, message["content"]
    if where == "part":
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        shown = [part for part in texts if part.get("text")] if isinstance(texts, list) else []
        message["content"] = [{"type": "thinking", "thinking": reasoning}, *shown]
    elif where is not None:
        if capabilities.reasoning_excludes_content and message.get("tool_calls") and isinstance(content, str):
            # Such a template shows either text as what was thought before the call.
            reasoning = "\n\n".join(filter(None, (reasoning, content)))
            message["content"] = ""
        message[where] = reasoning


def _role(role: object, path: str, capabilities: TemplateCapabilities) -> str:
    if not isinstance(role, str):
        raise InvalidValue(f"{path}.role must be a string", param=f"{path}.role")
    if role == "developer" and not capabilities.knows_developer:
        role = "system"
    if role == "system" and capabilities.drops_system:
        raise InvalidTemplateInput("this model's chat template has no place for system messages", param=f"{path}.role")
    return role


def _content(content: object, role: str, path: str, capabilities: TemplateCapabilities) -> object:
    if content is None:
        content = ""
    if isinstance(content, str):
        if role not in capabilities.only_list_roles:
            return content
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list | tuple):
        raise InvalidValue(f"{path}.content must be a string or a list of parts", param=f"{path}.content")
    texts = [_part_text(part, f"{path}.content[{index}]") for index, part in enumerate(content)]
    if role in capabilities.list_roles:
        return [{"type": "text", "text": text} for text in texts]
    return "\n".join(texts)


def _part_text(part: object, path: str) -> str:
    if not isinstance(part, Mapping):
        raise InvalidValue(f"{path} must be an object", param=path)
    kind = part.get("type")
    field = _PART_TEXT_FIELDS.get(kind) if isinstance(kind, str) else None
    if field is None:
        raise UnsupportedParameter(f"this model reads text only; {path} is of another type", param=path)
    text = part.get(field)
    if not isinstance(text, str):
        raise InvalidValue(f"{path}.{field} must be a string", param=f"{path}.{field}")
    return text


def _tool_calls(
    message: Mapping[str, object], path: str, capabilities: TemplateCapabilities
) -> list[dict[str, object]]:
    calls = message.get("tool_calls") or []
    path = f"{path}.tool_calls"
    if not isinstance(calls, list | tuple):
        raise InvalidValue(f"{path} must be a list", param=path)
    return [_tool_call(call, f"{path}[{index}]", capabilities) for index, call in enumerate(calls)]


def _tool_call(call: object, path: str, capabilities: TemplateCapabilities) -> dict[str, object]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise InvalidValue(f"{path}.function must be an object", param=f"{path}.function")
    prepared = {key: value for key, value in call.items() if value is not None}
    arguments = _arguments(function.get("arguments"), f"{path}.function.arguments", capabilities)
    prepared["function"] = {**function, "arguments": arguments}
    return prepared


def _arguments(arguments: object, path: str, capabilities: TemplateCapabilities) -> object:
    """Arguments come as JSON text. Where the template wants text the model's own characters go back to it unchanged."""
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        arguments = "{}"
    if capabilities.wants_argument_text:
        return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, Mapping):
        raise InvalidValue(f"{path} must be a JSON object: this model's chat template needs its members", param=path)
    return {key: _argument(value, capabilities.argument_values) for key, value in arguments.items()}


def _argument(value: object, form: ArgumentValues) -> object:
    if form == "json" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if form == "escaped" and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1]
    return value
