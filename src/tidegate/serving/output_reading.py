"""How the output of one request is read: which parser each choice gets, and which control tokens it has to see.

Decides by the served model's formats and by the tools that the request may call. Does not know the wire or tokens'
order; the grammar that keeps a model to its format is made elsewhere.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class ReadingSource:
    """What one request has to say about its output. `controls`: spelled control tokens of its vocabulary, by id.

    `is_open`: whether the prompt ended inside reasoning; None: as usual for the family.
    """

    tools: OfferedTools
    controls: Mapping[str, int]
    mint_call_id: Callable[[], str]
    is_open: bool | None = None


def plan_reading(formats: OutputFormats, source: ReadingSource) -> OutputReading:
    """Returns how to read one request's output. Without formats, and without tools or reasoning, all is content."""
    form, reasoning = formats.tool, formats.reasoning

    def make_parser() -> OutputParser:
        return build_parser(form, source.tools, source.mint_call_id, reasoning=reasoning, is_open=source.is_open)

    if isinstance(make_parser(), PlainParser):
        return OutputReading()
    return OutputReading(
        make_parser, visible_ids(form if needs_form(form, source.tools) else None, reasoning, source.controls)
    )


def visible_ids(
    form: ToolFormat | None, reasoning: ReasoningMarkers | None, controls: Mapping[str, int]
) -> frozenset[int]:
    """Returns the control tokens whose spelling is part of a marker, and so has to reach the parser as text."""
    markers = [*_markers(form), *_markers(reasoning)]
    return frozenset(number for spelling, number in controls.items() if any(spelling in one for one in markers))


def control_ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Returns every control token of a vocabulary by its spelling. Looks at each of its ids."""
    special = (number for number in range(vocabulary.size) if vocabulary.is_special(number))
    spelled = ((vocabulary.token_bytes(number).decode("utf-8", "replace"), number) for number in special)
    return {spelling: number for spelling, number in spelled if spelling}


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
