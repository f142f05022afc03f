"""Where a rendered prompt stops: inside reasoning, behind reasoning, or where the model may begin to reason by itself.

Decides by the prompt's own end, never by a guess about the family: templates put the opening marker there, or a whole
empty stretch of reasoning where thinking is switched off. A control token that a caller spelled is no marker.
"""

from enum import Enum

from tidegate.parsers.tool_format import ReasoningMarkers
from tidegate.text.rendered_prompt import RenderedPrompt

_LEAD = 64
"""Characters before a continued message in which its template may have opened reasoning."""


class PromptState(Enum):
    """What comes next."""

    INSIDE = "inside"
    """Reasoning goes on."""
    BEHIND = "behind"
    """Reasoning is over, or switched off: content."""
    BEFORE = "before"
    """Either: the model opens reasoning, or does not."""


def state_of(prompt: RenderedPrompt, markers: ReasoningMarkers, *, continued: str | None = None) -> PromptState:
    """Returns the state at the prompt's end. `continued`: the text of the assistant that the model goes on with."""
    if continued is not None:
        start = max(len(prompt.text) - len(continued) - _LEAD, 0)
        opened, closed = _last(prompt, markers.opens, start), _last(prompt, markers.closes, start)
        return PromptState.INSIDE if opened > closed else PromptState.BEHIND
    text = prompt.text.rstrip()
    for marks, state in ((markers.opens, PromptState.INSIDE), (markers.closes, PromptState.BEHIND)):
        for mark in marks:
            bare = mark.rstrip()
            start = len(text) - len(bare)
            if text.endswith(bare) and not prompt.is_plain(start, len(text)):
                return state
    if markers.is_open:
        return PromptState.INSIDE
    return PromptState.BEFORE


def _last(prompt: RenderedPrompt, marks: tuple[str, ...], start: int) -> int:
    """Returns where the last of some markers begins, -1 where there is none. In its own turn the assistant's text is
    the model's: a marker counts whoever spelled it.
    """
    return max(prompt.text.rfind(mark, start) for mark in marks)
