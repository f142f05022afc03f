"""From messages as the API has them to messages as a chat template wants them.

Decides, by what the template can do: which role a message gets, whether content is text or a list of parts, whether
tool arguments are a mapping or text. Absent, null and empty are one thing here, so no template ever sees a None that it
could print. Does not know the template's source, tokens, or HTTP.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.errors import InvalidTemplateInput, InvalidValue, UnsupportedParameter

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


def prepare_messages(
    messages: Sequence[Mapping[str, object]], capabilities: TemplateCapabilities
) -> list[dict[str, object]]:
    """Returns the template's messages; the input stays as it is.

    Raises InvalidValue for contents and arguments of a wrong shape, UnsupportedParameter for parts that are not text,
    InvalidTemplateInput for a system message that this template would drop. `param` names the place.
    """
    return [_prepare(message, f"messages[{index}]", capabilities) for index, message in enumerate(messages)]


def _prepare(message: Mapping[str, object], path: str, capabilities: TemplateCapabilities) -> dict[str, object]:
    prepared = {key: value for key, value in message.items() if value is not None}
    role = _role(message.get("role"), path, capabilities)
    prepared["role"] = role
    content = message.get("content")
    if content is None and role == "assistant":
        content = prepared.pop("refusal", None)
    prepared["content"] = _content(content, role, path, capabilities)
    calls = _tool_calls(message, path, capabilities)
    prepared.pop("function_call", None)
    if calls:
        prepared["tool_calls"] = calls
    else:
        prepared.pop("tool_calls", None)
    if "reasoning" in prepared:
        prepared.setdefault("reasoning_content", prepared["reasoning"])
    return prepared


def _role(role: object, path: str, capabilities: TemplateCapabilities) -> str:
    if not isinstance(role, str):
        raise InvalidValue(f"{path}.role must be a string", param=f"{path}.role")
    if role == "developer" and not capabilities.knows_developer:
        role = "system"
    if role == "function":
        role = "tool"
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
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        calls = [{"type": "function", "function": legacy}]
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
    return arguments
