"""The parser without a format."""

from tidegate.inference.event import ContentText
from tidegate.parsers.plain import PlainParser
from tidegate.testing.check_parser import check_parser, parse_pieces


def test_every_cut_gives_the_same_content() -> None:
    check_parser(PlainParser, ["", "a", "plain text", "<tool_call>{}</tool_call>", "é😀\n\n", "x" * 1000])


def test_all_text_is_content_at_once() -> None:
    parser = PlainParser()
    assert parser.feed("abc") == [ContentText("abc")]
    assert parser.finish() == []


def test_no_text_gives_no_event() -> None:
    assert parse_pieces(PlainParser(), ["", ""]) == []
