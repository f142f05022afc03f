"""What a request passes to its chat template beside messages and tools.

Decides what becomes of `reasoning_effort` and of every name in `chat_template_kwargs`:

| what | the template reads it | it does not |
|---|---|---|
| `reasoning_effort` of a level | passed | 422 |
| `reasoning_effort: none` | its switch is set to off | 422 |
| a switch (`thinking_switch.SWITCH_NAMES`) | passed | 422 |
| any other name | passed | as an unknown field, by `api.unknown_fields` |

Where the model has no reasoning, off and none ask for nothing and are accepted. What a request sets in
`chat_template_kwargs` wins over what `reasoning_effort` would set. Reserved names have been refused before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.contract.quote import quote
from tidegate.contract.unknown_fields import UnknownFieldPolicy, reported_fields
from tidegate.errors import UnsupportedParameter
from tidegate.text.chat_template import ChatTemplate
from tidegate.text.thinking_switch import EFFORT, SWITCH_NAMES, SWITCHES

KWARGS = "chat_template_kwargs"
NO_EFFORT = "none"
_OFF = {switch.name: switch.off for switch in SWITCHES} | {EFFORT: NO_EFFORT}


@dataclass(frozen=True, slots=True)
class TemplateArguments:
    """`variables` for the template; `unread`: names to report that no template asks for."""

    variables: Mapping[str, Any]
    unread: tuple[str, ...] = ()


def template_arguments(
    template: ChatTemplate,
    *,
    effort: str | None,
    kwargs: Mapping[str, Any],
    tells_reasoning: bool,
    unknown_policy: UnknownFieldPolicy,
) -> TemplateArguments:
    """Returns what reaches the template. `tells_reasoning`: the model's output can hold reasoning.

    Raises UnsupportedParameter for what this template cannot be told, UnknownParameter under policy `reject`.
    """
    variables = {**_effort_variables(template, effort, kwargs, tells_reasoning=tells_reasoning), **kwargs}
    unread = []
    for name, value in kwargs.items():
        if name in template.variables:
            continue
        is_idle = not tells_reasoning and name in _OFF and value == _OFF[name]
        if name in SWITCH_NAMES and value is not None and not is_idle:
            param = f"{KWARGS}.{name}"
            raise UnsupportedParameter(f"{param}: the served model's chat template does not read it", param=param)
        unread.append(f"{KWARGS}.{name}")
    return TemplateArguments(variables, tuple(reported_fields(unread, unknown_policy)))


def effort_reason(template: ChatTemplate, *, tells_reasoning: bool) -> str | None:
    """Returns what of `reasoning_effort` is not served with this template; None where every level is passed on."""
    if EFFORT in template.variables:
        return None
    if template.capabilities.thinking_switch is not None:
        return "none switches thinking off; the served model's chat template knows no levels"
    if tells_reasoning:
        return "the served model's chat template knows neither levels nor a switch of thinking"
    return "the served model has no levels of reasoning"


def _effort_variables(
    template: ChatTemplate, effort: str | None, kwargs: Mapping[str, Any], *, tells_reasoning: bool
) -> dict[str, Any]:
    if effort is None:
        return {}
    switch = template.capabilities.thinking_switch
    if effort == NO_EFFORT and switch is not None:
        return {} if any(one.name in kwargs for one in SWITCHES) else {switch.name: switch.off}
    if effort != NO_EFFORT and EFFORT in template.variables:
        return {EFFORT: effort}
    if effort == NO_EFFORT and not tells_reasoning:
        return {}
    reason = effort_reason(template, tells_reasoning=tells_reasoning) or "thinking cannot be switched off"
    raise UnsupportedParameter(f"{EFFORT}: {quote(effort)} is not served: {reason}", param=EFFORT)
