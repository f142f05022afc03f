"""Which variable of a chat template switches the model's thinking on and off.

Decides by reading and by trying: a template has a switch when its source reads the variable, and the prompt for one and
the same conversation is another one for on and for off. Does not know requests.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

Render = Callable[[Mapping[str, object]], str | None]
"""Renders with these variables; None if the template refused or failed."""

_USER = {"role": "user", "content": "hello"}


@dataclass(frozen=True, slots=True)
class ThinkingSwitch:
    """A variable, and its values for on and off."""

    name: str
    on: object = True
    off: object = False


SWITCHES = (
    ThinkingSwitch("enable_thinking"),
    ThinkingSwitch("thinking"),
    ThinkingSwitch("thinking_option", "on", "off"),
    ThinkingSwitch("thinking_budget", -1, 0),
    ThinkingSwitch("reasoning"),
)
"""The switches of published templates; the first that works counts."""

EFFORT = "reasoning_effort"
"""The variable in which templates look for a level of reasoning."""

SWITCH_NAMES = frozenset(switch.name for switch in SWITCHES) | {EFFORT}


def find_switch(render: Render, variables: Collection[str]) -> ThinkingSwitch | None:
    """Returns the template's switch; `variables` are those that its source reads."""
    for switch in SWITCHES:
        if switch.name in variables:
            on, off = (_prompt(render, {switch.name: value}) for value in (switch.on, switch.off))
            if on is not None and off is not None and on != off:
                return switch
    return None


def _prompt(render: Render, more: Mapping[str, object]) -> str | None:
    return render({"messages": [_USER], "add_generation_prompt": True, **more})
