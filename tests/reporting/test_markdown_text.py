"""Texts of servers in Markdown."""

import pytest

from tidegate.reporting.markdown_text import code, fence, quote

CODES = {"": "`  `", "a": "`a`", "`": "`` ` ``", "a``b": "```a``b```", "a\nb": "`a b`", "@you": "`@you`"}


@pytest.mark.parametrize("content", CODES, ids=[f"code {position}" for position in range(len(CODES))])
def test_inline_code_is_closed_by_nothing_inside(content: str) -> None:
    assert code(content) == CODES[content]


def test_in_a_table_nothing_ends_a_cell() -> None:
    assert code("a|b", in_table=True) == "`a\\|b`"
    assert code("x" * 500).count("x") == 399
    assert quote("a|b <i> *c*\n\x1b") == "a\\|b &lt;i\\> \\*c\\* \\\\u001b"


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fence(["echo ````", "b\0"]) == ["`````sh", "echo ````\nb\\u0000", "`````"]
