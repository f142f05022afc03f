"""Finds out what a chat template can do, by rendering small conversations with it.

A template's source does not say in any dependable way whether it takes a list as content or wants arguments as a
mapping; its output does. Each probe puts words that occur nowhere else into a conversation and looks for them in the
prompt, and for the brackets and quotes that a list or mapping leaves when it is printed as it is.
"""

import re
from collections.abc import Callable, Mapping

from tidegate.text.template_messages import TemplateCapabilities

Render = Callable[[Mapping[str, object]], str | None]
"""Renders with these variables; None if the template refused or failed."""
Message = dict[str, object]

_FIRST, _SECOND = "zebra-Q7", "falcon-K3"
_PARTS: list[Message] = [{"type": "text", "text": _FIRST}, {"type": "text", "text": _SECOND}]
_PRINTED_PART = re.compile(r"""['"]type['"]\s*:""")
_PRINTED_MAPPING = re.compile(r"""\{\s*'""")
_USER: Message = {"role": "user", "content": "hello"}
_ARGUMENTS = {"zebra_key": _FIRST}
_ARGUMENT_TEXT = '{"zebra_key": "' + _FIRST + '"}'
_TOOLS: list[Message] = [
    {
        "type": "function",
        "function": {
            "name": "zebra_tool",
            "description": "A tool.",
            "parameters": {
                "type": "object",
                "properties": {"zebra_key": {"type": "string", "description": "A key."}},
                "required": [],
            },
        },
    }
]
_ROLES = ("user", "system", "assistant", "tool")


def _calling(arguments: object) -> Message:
    function = {"name": "zebra_tool", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call00001", "type": "function", "function": function}],
    }


def _conversation(role: str, content: object, arguments: object) -> list[Message]:
    """Returns a conversation in which a message of `role` stands where templates expect one."""
    message: Message = {"role": role, "content": content}
    if role == "user":
        return [message]
    if role in ("system", "developer"):
        return [message, _USER]
    if role == "assistant":
        return [_USER, message, _USER]
    return [_USER, _calling(arguments), {**message, "tool_call_id": "call00001", "name": "zebra_tool"}]


def probe_template(render: Render, constants: frozenset[str]) -> TemplateCapabilities:
    """Returns what the template can do. `constants` are the string constants of its source.

    A template that names the role `developer` in its source knows it; one that prints any role does not.
    """
    render = _with_needed_tools(render)
    wants_argument_text = _wants_argument_text(render)
    arguments: object = _ARGUMENT_TEXT if wants_argument_text else _ARGUMENTS
    as_list = {role for role in _ROLES if _takes_list(render, role, arguments)}
    as_text = {role for role in _ROLES if _shows(render, _conversation(role, _FIRST, arguments))}
    system = render({"messages": _conversation("system", _FIRST, arguments), "add_generation_prompt": True})
    with_tools = render({"messages": [_USER], "tools": _TOOLS, "add_generation_prompt": True})
    supports_system = bool({"system"} & (as_list | as_text))
    return TemplateCapabilities(
        list_roles=frozenset(as_list),
        only_list_roles=frozenset(as_list - as_text),
        knows_developer="developer" in constants and _shows(render, _conversation("developer", _FIRST, arguments)),
        supports_system=supports_system,
        drops_system=system is not None and not supports_system,
        supports_tools=with_tools is not None and "zebra_tool" in with_tools,
        wants_argument_text=wants_argument_text,
    )


def _with_needed_tools(render: Render) -> Render:
    """Adds tools to every probe where the template, being one for requests with tools, cannot do without."""
    plain = {"messages": [_USER], "add_generation_prompt": True}
    if render(plain) is not None or render({**plain, "tools": _TOOLS}) is None:
        return render
    return lambda variables: render({"tools": _TOOLS, **variables})


def _shows(render: Render, messages: list[Message]) -> bool:
    text = render({"messages": messages, "add_generation_prompt": True})
    return text is not None and _FIRST in text


def _takes_list(render: Render, role: str, arguments: object) -> bool:
    text = render({"messages": _conversation(role, _PARTS, arguments), "add_generation_prompt": True})
    return text is not None and _FIRST in text and _SECOND in text and _PRINTED_PART.search(text) is None


def _wants_argument_text(render: Render) -> bool:
    """A mapping is tried first: published templates are written for it. Text only where a mapping comes out broken."""
    for tools in ({}, {"tools": _TOOLS}):
        text = render({**tools, **_calls(_ARGUMENTS)})
        if text is not None and _FIRST in text and _PRINTED_MAPPING.search(text) is None:
            return False
    for tools in ({}, {"tools": _TOOLS}):
        text = render({**tools, **_calls(_ARGUMENT_TEXT)})
        if text is not None and _ARGUMENT_TEXT in text:
            return True
    return False


def _calls(arguments: object) -> Mapping[str, object]:
    return {"messages": _conversation("tool", "done", arguments), "add_generation_prompt": True}
