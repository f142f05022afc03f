"""Where reasoning begins: what the rendered prompt ended with decides, and the family only where nobody knows."""

import pytest

from harness.parsed_output import parser_of, read_output
from tidegate.parsers.reasoning_families import REASONING

MARKED = sorted(name for name, markers in REASONING.items() if markers is not None)


@pytest.mark.parametrize("name", MARKED)
def test_a_prompt_that_ends_inside_reasoning_makes_the_beginning_reasoning(name: str) -> None:
    markers = REASONING[name]
    assert markers is not None
    found = read_output(parser_of(None, name, is_open=True), ["why", markers.closes[0], "so"])
    assert (found.reasoning, found.content) == ("why", "so")


@pytest.mark.parametrize("name", MARKED)
def test_a_prompt_that_ends_outside_reasoning_makes_the_beginning_content(name: str) -> None:
    found = read_output(parser_of(None, name, is_open=False), ["just ", "so"])
    assert (found.reasoning, found.content) == ("", "just so")


@pytest.mark.parametrize("name", MARKED)
def test_without_a_word_of_the_prompt_the_family_decides(name: str) -> None:
    markers = REASONING[name]
    assert markers is not None
    found = read_output(parser_of(None, name), ["just so"])
    assert (found.reasoning, found.content) == (("just so", "") if markers.is_open else ("", "just so"))


@pytest.mark.parametrize("text", ["  just so", "\n\n", " \r\n so"])
@pytest.mark.parametrize("is_split", [False, True])
def test_blanks_before_text_without_reasoning_are_content(text: str, is_split: bool) -> None:
    found = read_output(parser_of(None, "think", is_open=False), list(text) if is_split else [text])
    assert (found.reasoning, found.content) == ("", text)
