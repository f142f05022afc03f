"""How the output of one request is read: which parser each choice gets, and which control tokens it has to see.

Decides by the served model's formats and by the tools that the request may call. Does not know the wire or tokens'
order; the grammar that keeps a model to its format is made elsewhere.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tidegate.inference.finish import FinishReason
from tidegate.parsers.build_parser import build_parser, needs_form
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.parser import OutputParser
from tidegate.parsers.plain import PlainParser
from tidegate.parsers.tool_format import ReasoningMarkers, ToolFormat
from tidegate.serving.output_formats import OutputFormats
from tidegate.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class OutputReading:
    """What a `ChoicePlan` needs to read text that is not all content."""

    make_parser: Callable[[], OutputParser] = PlainParser
    visible_ids: frozenset[int] = frozenset()
    allows_many_calls: bool = True
    calls_finish: FinishReason = FinishReason.TOOL_CALLS


PLAIN_READING = OutputReading()


MAX_FORMATS = 64
"""Pairs of formats whose control tokens are remembered. Only scripts name more than one."""


class ControlTokens:
    """The control tokens of a vocabulary, `ids` by their spelling."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
        self._found: dict[tuple[ToolFormat | None, ReasoningMarkers | None], frozenset[int]] = {}

    def spelled_in(self, form: ToolFormat | None, reasoning: ReasoningMarkers | None) -> frozenset[int]:
        """Returns those whose spelling is part of a marker, and so has to reach the parser as text."""
        found = self._found.get((form, reasoning))
        if found is None:
            text = "\n".join((*_markers(form), *_markers(reasoning)))
            found = frozenset(number for spelling, number in self.ids.items() if spelling in text)
            if len(self._found) >= MAX_FORMATS:
                self._found.clear()
            self._found[form, reasoning] = found
        return found

    def extended(self, ids: Mapping[str, int]) -> "ControlTokens":
        """Returns these and further ones."""
        return ControlTokens({**self.ids, **ids}) if ids else self


@dataclass(frozen=True, slots=True)
class ReadingSource:
    """What one request has to say about its output.

    `is_open`: whether the prompt ended inside reasoning; None: as usual for the family.
    """

    tools: OfferedTools
    controls: ControlTokens
    mint_call_id: Callable[[], str]
    is_open: bool | None = None
    allows_many_calls: bool = True
    calls_finish: FinishReason = FinishReason.TOOL_CALLS


def plan_reading(formats: OutputFormats, source: ReadingSource) -> OutputReading:
    """Returns how to read one request's output. Without formats, and without tools or reasoning, all is content."""
    form, reasoning = formats.tool, formats.reasoning

    def make_parser() -> OutputParser:
        return build_parser(form, source.tools, source.mint_call_id, reasoning=reasoning, is_open=source.is_open)

    if isinstance(make_parser(), PlainParser):
        return PLAIN_READING
    shown = source.controls.spelled_in(form if needs_form(form, source.tools) else None, reasoning)
    return OutputReading(make_parser, shown, source.allows_many_calls, source.calls_finish)


def control_ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Returns every control token of a vocabulary by its spelling. Looks at each of its ids."""
    special = (number for number in range(vocabulary.size) if vocabulary.is_special(number))
    spelled = ((vocabulary.token_bytes(number).decode("utf-8", "replace"), number) for number in special)
    return {spelling: number for spelling, number in spelled if spelling}


def token_ids_of(vocabulary: Vocabulary, texts: frozenset[str]) -> dict[str, int]:
    """Returns those of `texts` that are one token each, with its id. Looks at every id where there is a text."""
    wanted = {text.encode(): text for text in texts}
    if not wanted:
        return {}
    found = ((vocabulary.token_bytes(number), number) for number in reversed(range(vocabulary.size)))
    return {wanted[raw]: number for raw, number in found if raw in wanted}


def _markers(part: object) -> Iterable[str]:
    """Yields every text in a format's description: markers, parts of calls, the example."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _markers(one)
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from _markers(getattr(part, field.name))
