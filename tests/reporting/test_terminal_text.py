"""Lines for a terminal."""

from tidegate.reporting.terminal_text import fold

LINE = "    clause: " + "some words that go on and on " * 5


def test_long_lines_go_on_further_in_and_keep_all_their_words() -> None:
    folded = list(fold([LINE, "short"], 60))
    assert folded[-1] == "short"
    assert all(len(line) <= 60 for line in folded)
    assert all(line.startswith("      ") for line in folded[1:-1])
    assert " ".join(" ".join(folded[:-1]).split()) == " ".join(LINE.split())


def test_lines_stay_as_they_are_where_there_is_no_width_or_no_place_to_break() -> None:
    assert list(fold([LINE], None)) == [LINE]
    assert list(fold([LINE], 20)) == [LINE]
    assert list(fold(["x" * 90], 80)) == ["x" * 90]
