"""Blanks behind a block of calls belong to the markup, whatever else the block held."""

import pytest

from harness.parsed_output import parser_of, read_output

CALL = '{"name": "tide_at", "arguments": {}}'
OTHER = '{"name": "nope", "arguments": {}}'
BLOCKS = [(f"[TOOL_CALLS][{CALL}]", ""), (f"[TOOL_CALLS][{CALL}, {OTHER}]", f", {OTHER}]")]


@pytest.mark.parametrize(("block", "content"), BLOCKS)
@pytest.mark.parametrize("is_split", [False, True])
def test_blanks_behind_a_block_are_no_content(block: str, content: str, is_split: bool) -> None:
    text = f"{block}\n\n{block}\n"
    found = read_output(parser_of("mistral"), list(text) if is_split else [text])
    assert (found.content, found.names) == (2 * content, ["tide_at", "tide_at"])
