"""Finds out what a chat template can do, by rendering small conversations with it.

A template's source does not say in any dependable way whether it takes a list as content or wants arguments as a
mapping; its output does. Each probe puts words that occur nowhere else into a conversation and looks for them in the
prompt, and for the brackets and quotes that a list or mapping leaves when it is printed as it is.
"""

import re
from collections.abc import Mapping

from tidegate.text import history_probe
from tidegate.text.history_probe import CALL_ID, USER, Message, Render, calling
from tidegate.text.template_messages import TemplateCapabilities
from tidegate.text.thinking_switch import find_switch

_FIRST, _SECOND = "zebra-Q7", "falcon-K3"
_PARTS: list[Message] = [{"type": "text", "text": _FIRST}, {"type": "text", "text": _SECOND}]
_PRINTED_PART = re.compile(r"""['"]type['"]\s*:""")
_PRINTED_MAPPING = re.compile(r"""\{\s*'""")
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


def _conversation(role: str, content: object, arguments: object) -> list[Message]:
    """Returns a conversation in which a message of `role` stands where templates expect one."""
    message: Message = {"role": role, "content": content}
    if role == "user":
        return [message]
    if role in ("system", "developer"):
        return [message, USER]
    if role == "assistant":
        return [USER, message, USER]
    return [USER, calling(arguments), {**message, "tool_call_id": CALL_ID, "name": "zebra_tool"}]


def probe_template(
    render: Render, constants: frozenset[str], variables: frozenset[str] = frozenset()
) -> TemplateCapabilities:
    """Returns what the template can do. `constants` are the strings in its source, `variables` the names it reads.

    A template that names the role `developer` in its source knows it; one that prints any role does not.
    """
    render = _with_needed_tools(render)
    needs_parts = any(history_probe.calls_need_parts(render, form) for form in (_ARGUMENTS, _ARGUMENT_TEXT))
    render = _with_parts(render) if needs_parts else render
    wants_argument_text = _wants_argument_text(render)
    arguments: object = _ARGUMENT_TEXT if wants_argument_text else _ARGUMENTS
    as_text = {role for role in _ROLES if _shows(render, _conversation(role, _SECOND, arguments))}
    # A list that is printed as it is has not been read, but where text is taken apart nothing else is left.
    as_list = {role for role in _ROLES if _takes_list(render, role, arguments, may_print=role not in as_text)}
    system = render({"messages": _conversation("system", _FIRST, arguments), "add_generation_prompt": True})
    with_tools = render({"messages": [USER], "tools": _TOOLS, "add_generation_prompt": True})
    reasoning_field = history_probe.find_reasoning_field(render, arguments)
    supports_system = bool({"system"} & (as_list | as_text))
    return TemplateCapabilities(
        list_roles=frozenset(as_list),
        only_list_roles=frozenset(as_list - as_text),
        knows_developer="developer" in constants and _shows(render, _conversation("developer", _SECOND, arguments)),
        supports_system=supports_system,
        drops_system=system is not None and not supports_system,
        supports_tools=with_tools is not None and "zebra_tool" in with_tools,
        wants_argument_text=wants_argument_text,
        argument_values="own" if wants_argument_text else history_probe.find_argument_values(render),
        call_ids=history_probe.find_call_ids(render, arguments),
        single_calls=history_probe.find_single_calls(render, arguments),
        calls_need_parts=needs_parts,
        reasoning_field=reasoning_field,
        thinking_switch=find_switch(render, variables),
        reasoning_excludes_content=reasoning_field is not None
        and history_probe.excludes_content(render, arguments, reasoning_field),
    )


def _with_parts(render: Render) -> Render:
    """Gives every turn with calls and no text an empty part as its content."""

    def render_with_parts(variables: Mapping[str, object]) -> str | None:
        messages = variables["messages"]
        assert isinstance(messages, list)
        parts = [{"type": "text", "text": ""}]
        filled = [{**one, "content": one.get("content") or parts} if "tool_calls" in one else one for one in messages]
        return render({**variables, "messages": filled})

    return render_with_parts


def _with_needed_tools(render: Render) -> Render:
    """Adds tools to every probe where the template, being one for requests with tools, cannot do without."""
    plain = {"messages": [USER], "add_generation_prompt": True}
    if render(plain) is not None or render({**plain, "tools": _TOOLS}) is None:
        return render
    return lambda variables: render({"tools": _TOOLS, **variables})


def _shows(render: Render, messages: list[Message]) -> bool:
    text = render({"messages": messages, "add_generation_prompt": True})
    return text is not None and _SECOND in text


def _takes_list(render: Render, role: str, arguments: object, *, may_print: bool) -> bool:
    text = render({"messages": _conversation(role, _PARTS, arguments), "add_generation_prompt": True})
    if text is None or _FIRST not in text or _SECOND not in text:
        return False
    return may_print or _PRINTED_PART.search(text) is None


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
