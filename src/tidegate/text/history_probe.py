"""Finds out what a chat template does with earlier turns: with ids of calls, several calls of a turn, and reasoning.

As `template_probe`: by rendering conversations of words that occur nowhere else. `arguments` are in the form that the
template takes.
"""

import json
from collections.abc import Callable, Mapping
from typing import get_args

from tidegate.text.template_history import CallIds
from tidegate.text.template_messages import ArgumentValues, ReasoningField

Render = Callable[[Mapping[str, object]], str | None]
"""Renders with these variables; None if the template refused or failed."""
Message = dict[str, object]

USER: Message = {"role": "user", "content": "hello"}
CALL_ID = "call00001"
"""The one form of id that every template takes."""
_LONG_ID = "call_zebra0123456789abcdefghi"
_THOUGHT = "heron-T5"
_KEY, _QUOTED = "zebra_key", 'heron"T5'
_NAME, _OTHER_NAME = "zebra_tool", "otter_tool"


def calling(
    arguments: object, call_id: str = CALL_ID, name: str = _NAME, more: Mapping[str, object] | None = None
) -> Message:
    """Returns an assistant's turn with one call, and with the members of `more`."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call], **(more or {})}


def answering(call_id: str = CALL_ID) -> Message:
    """Returns what a tool said."""
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def calls_need_parts(render: Render, arguments: object) -> bool:
    """Whether a turn with a call and no text fails with empty text, and not with an empty part."""
    parts = [{"type": "text", "text": ""}]
    return (
        _render(render, [USER, calling(arguments)]) is None
        and _render(render, [USER, calling(arguments, more={"content": parts})]) is not None
    )


def find_argument_values(render: Render) -> ArgumentValues:
    """Returns how values in a mapping of arguments have to go in, so that what they are can be read again."""
    value = {"otter_key": [True, None]}
    text = _render(render, [USER, calling({_KEY: value})])
    if text is not None and str(value) in text:
        # A template that puts strings between quotes would turn JSON text into a string.
        as_json = json.dumps(value)
        shown = _render(render, [USER, calling({_KEY: as_json})])
        if shown is not None and as_json in shown and f'"{as_json}"' not in shown:
            return "json"
    quoted = _render(render, [USER, calling({_KEY: _QUOTED})])
    return "escaped" if quoted is not None and f'"{_QUOTED}"' in quoted else "own"


def find_call_ids(render: Render, arguments: object) -> CallIds:
    """Returns what becomes of a call's id."""
    short = _render(render, [USER, calling(arguments), answering()])
    if short is None:
        return "any"
    if CALL_ID in short and _NAME not in short.replace(CALL_ID, ""):
        return "named"
    long = _render(render, [USER, calling(arguments, call_id=_LONG_ID), answering(_LONG_ID)])
    return "short" if long is None else "any"


def find_single_calls(render: Render, arguments: object) -> bool:
    """Whether a turn with two calls is refused or loses the second, where a turn with one is rendered."""
    one = calling(arguments)
    other = calling(arguments, name=_OTHER_NAME, call_id="call00002")
    single = _render(render, [USER, other, answering("call00002")])
    if single is None or _OTHER_NAME not in single:
        return False
    both = {**one, "tool_calls": [*_calls(one), *_calls(other)]}
    text = _render(render, [USER, both, answering(), answering("call00002")])
    return text is None or _OTHER_NAME not in text


def find_reasoning_field(render: Render, arguments: object) -> ReasoningField | None:
    """Returns where the template looks for the reasoning of a turn."""
    fields: tuple[ReasoningField, ...] = get_args(ReasoningField)
    return next((name for name in fields if _shows_thought(render, arguments, name)), None)


def excludes_content(render: Render, arguments: object, name: ReasoningField) -> bool:
    """Whether a turn with a call is rendered with its reasoning, and refused where it has content too."""
    if name == "part":
        return False
    said = calling(arguments, more={"content": "words", name: _THOUGHT})
    return (
        _render(render, [USER, calling(arguments, more={name: _THOUGHT}), answering()]) is not None
        and _render(render, [USER, said, answering()]) is None
        and _render(render, [USER, calling(arguments, more={"content": "words"}), answering()]) is not None
    )


def _shows_thought(render: Render, arguments: object, name: ReasoningField) -> bool:
    """Looks in a turn with a call whose result has come, and in a last turn without one."""
    member: Message = {name: _THOUGHT}
    plain: Message = {"role": "assistant", "content": "words", **member}
    called = calling(arguments, more=member)
    if name == "part":
        thought = {"type": "thinking", "thinking": _THOUGHT}
        plain["content"] = [thought, {"type": "text", "text": "words"}]
        called["content"] = [thought]
    conversations = ([USER, called, answering()], [USER, plain])
    for messages in conversations:
        for wants_prompt in (True, False):
            text = render({"messages": messages, "add_generation_prompt": wants_prompt})
            # A list of parts that is printed as it is has not been read.
            if text is not None and _THOUGHT in text and f"'{_THOUGHT}'" not in text and f'"{_THOUGHT}"' not in text:
                return True
    return False


def _render(render: Render, messages: list[Message]) -> str | None:
    return render({"messages": messages, "add_generation_prompt": True})


def _calls(message: Message) -> list[object]:
    calls = message["tool_calls"]
    return calls if isinstance(calls, list) else []
