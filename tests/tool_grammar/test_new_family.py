"""The family in the docs that does not exist: a description alone gives it a parser and a grammar."""

import re
from pathlib import Path
from typing import Any

from harness.tool_walk import WalkVocabulary, byte_vocabulary, marked_vocabulary
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.event import ToolCallArguments, ToolCallEnded, ToolCallStarted
from tidegate.parsers.tool_grammar import tool_grammar

PAGE = Path(__file__).parents[2] / "docs/tool_formats.md"


def worked_example() -> dict[str, Any]:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names


def test_the_example_of_the_page_parses() -> None:
    assert worked_example()["events"] == [
        ToolCallStarted(0, "call_1", "tide_at"),
        ToolCallArguments(0, '{"port": "Brest"}'),
        ToolCallEnded(0),
    ]


def check(vocabulary: WalkVocabulary, spec: Any) -> None:
    grammar = vocabulary.compiler.compile(spec)
    assert not isinstance(grammar, GrammarRefusal)
    call = '<|do|>tide_at<|with|>{"port": "Brest"}<|done|>'
    assert vocabulary.accepts(grammar, call)
    assert not vocabulary.accepts(grammar, call.replace("Brest", "Rome"))
    assert not vocabulary.accepts(grammar, call.replace("tide_at", "moon_at"))
    assert not vocabulary.accepts(grammar, f"Well: {call}")


def test_the_example_of_the_page_is_forced() -> None:
    names = worked_example()
    check(byte_vocabulary(), names["grammar"])
    marked = marked_vocabulary(names["NARWHAL"])
    check(marked, tool_grammar(names["NARWHAL"], [names["tool"]], marked.tokens, is_required=True, allows_many=True))
