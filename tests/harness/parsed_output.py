"""A parsed output as a test wants to see it: content, reasoning, and calls with their whole arguments."""

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tidegate.inference.event import ContentText, ReasoningText, ToolCallArguments, ToolCallStarted
from tidegate.parsers.build_parser import build_parser, family_named, reasoning_named
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.parser import OutputParser
from tidegate.testing.check_parser import parse_pieces

TOOLS: dict[str, dict[str, Any]] = {
    "tide_at": {"type": "object", "properties": {"port": {"type": "string"}, "day": {"type": "integer"}}},
    "ping": {"type": "object", "properties": {}},
    "note_add": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object"},
            "level": {"type": "number"},
            "pin": {"type": "boolean"},
            "count": {"type": "integer"},
        },
    },
}


@dataclass
class Output:
    content: str = ""
    reasoning: str = ""
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def calls(self) -> list[tuple[str, Any]]:
        return [(name, json.loads(text)) for name, text in zip(self.names, self.arguments, strict=True)]


def counting_ids() -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"call_{next(numbers)}"


def parser_of(
    family: str | None,
    reasoning: str | None = None,
    *,
    is_open: bool | None = None,
    tools: dict[str, dict[str, Any]] | None = None,
) -> OutputParser:
    """A parser with counted call ids; `reasoning` names the markers, None: reasoning is not told apart."""
    return build_parser(
        None if family is None else family_named(family),
        OfferedTools((TOOLS if tools is None else tools).items()),
        counting_ids(),
        reasoning=None if reasoning is None else reasoning_named(reasoning),
        is_open=is_open,
    )


def read_output(parser: OutputParser, pieces: Iterable[str], *, is_cut: bool = False) -> Output:
    output = Output()
    for event in parse_pieces(parser, pieces, is_cut=is_cut):
        match event:
            case ContentText(text):
                output.content += text
            case ReasoningText(text):
                output.reasoning += text
            case ToolCallStarted(_, call_id, name):
                output.names.append(name)
                output.ids.append(call_id)
                output.arguments.append("")
            case ToolCallArguments(index, fragment):
                output.arguments[index] += fragment
    return output
