"""Where everything stands in a family's calls, read from the example of its description.

The example is one call of `tide_at` whose `port` is `Brest`. What stands around these words is how the family writes
calls, blanks and line breaks included. A lone `0` behind a quote or a colon is the number of the call.
"""

import re
from dataclasses import dataclass

from tidegate.parsers.tool_format import BraceCalls, PythonCalls, TagCalls, ToolFormat

_NAME, _KEY, _VALUE, _ARGUMENTS = "tide_at", "port", "Brest", '{"port": "Brest"}'
_LIST = re.compile(r"[^{\w]*\[[^{\w]*")


@dataclass(frozen=True, slots=True)
class CallLayout:
    """The texts around the parts of an output with calls.

    Around all: `section_open`, `section_close`. Around one call or one list of them: `opening` (a marker or nothing),
    `closing`. Around a list: `list_open`, `list_close`, with `separator` between calls; empty where there is no list.
    Around a name: `head`, `middle`. Behind the arguments: `tail`.
    """

    section_open: str
    opening: str
    list_open: str
    head: str
    middle: str
    tail: str
    separator: str
    list_close: str
    closing: str
    section_close: str

    @property
    def is_list(self) -> bool:
        return "]" in self.list_close


@dataclass(frozen=True, slots=True)
class TagLayout:
    """The texts around the parts of one parameter. `end` is the end marker of a value as the family writes it."""

    before_key: str
    after_key: str
    text_lead: str
    other_lead: str
    end: str
    behind: str
    """Behind the last parameter."""


def layout_of(form: ToolFormat) -> CallLayout:
    """Returns the layout. Raises ValueError when the example is not one call in the family's own markers."""
    before, name, behind = form.example.partition(_NAME)
    if not name:
        raise ValueError(f"{form.name}: the example has no call of {_NAME}")
    opening = next((marker for marker in form.opens if marker in before), "")
    section_open, _, head = before.partition(opening) if opening else ("", "", before)
    closing = next((marker for marker in form.closes if marker in behind), "")
    if closing:
        inner, _, section_close = behind.rpartition(closing)
    else:
        inner, section_close = behind, ""
    middle, tail = _around_arguments(form, inner)
    list_open, head = _split_list(opening, head)
    if list_open.endswith("[") or "[" in list_open or opening.endswith("["):
        end = tail.index(_last_of_call(form)) + 1
        tail, list_close = tail[:end], tail[end:]
        separator = "," + (list_open.partition("[")[2] or " ")
    else:
        list_close, separator = "", ""
    if isinstance(form.style, PythonCalls) and not list_close:
        list_open, head = head, ""
        tail, list_close = tail[:1], tail[1:]
        separator = "\n"
    return CallLayout(
        section_open, opening, list_open, head, middle, tail, separator, list_close, closing, section_close
    )


def tag_layout_of(form: ToolFormat, style: TagCalls) -> tuple[TagLayout, str]:
    """Returns the layout of a parameter, and what stands between a call's name and its first one."""
    _, _, behind = form.example.partition(_NAME)
    before, _, rest = behind.partition(_KEY)
    after_key, _, rest = rest.partition(_VALUE)
    end = max((marker for marker in style.value_ends if rest.startswith(marker)), key=len)
    rest = rest[len(end) :]
    stop = style.call_end or next(marker for marker in form.closes if marker in rest)
    gap = rest[: rest.index(stop)]
    after_name = before.removesuffix(style.param_open)
    text_lead = other_lead = ""
    if style.type_end:
        after_key, text_lead = style.key_end, f"true{style.type_end}"
        other_lead = f"false{style.type_end}"
    layout = TagLayout(f"{gap}{style.param_open}", after_key, text_lead, other_lead, end, f"{gap}{style.call_end}")
    return layout, after_name.removesuffix(gap)


def _around_arguments(form: ToolFormat, inner: str) -> tuple[str, str]:
    """Returns what stands between a name and its arguments, and what stands behind them."""
    match form.style:
        case TagCalls():
            layout, after_name = tag_layout_of(form, form.style)
            behind = inner.partition(_VALUE)[2][len(layout.end) :]
            return after_name, behind
        case PythonCalls():
            return "(", inner[inner.index(")") :]
        case BraceCalls():
            return "{", inner[inner.index("}") :]
    middle, found, tail = inner.partition(_ARGUMENTS)
    if not found:
        raise ValueError(f"{form.name}: the example has not the arguments {_ARGUMENTS}")
    return middle, tail


def _split_list(opening: str, head: str) -> tuple[str, str]:
    found = _LIST.match(head)
    if found is None and opening.endswith("["):
        return "", head
    return ("", head) if found is None else (found.group(), head[found.end() :])


def _last_of_call(form: ToolFormat) -> str:
    return ")" if isinstance(form.style, PythonCalls) else "}"
