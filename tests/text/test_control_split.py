"""Which parts of a prompt are control tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.text.control_split import ControlTable, compile_spellings, looks_like_control, split_controls
from tidegate.text.rendered_prompt import RenderedPrompt

TABLE = ControlTable(
    {"<s>": 1, "</s>": 2, "<|im|>": 3, "<|im|>x": 4, "[T]": 5, "  ": 6, "": 9}, frozenset((5,)), frozenset((2,))
)

# text, seams, parts
SPLITS = [
    ("", (), []),
    ("plain", (), ["plain"]),
    ("<s>a</s>", (), [1, "a", 2]),
    ("<s><s>", (), [1, 1]),
    ("<|im|>x", (), [4]),
    ("<|im|>y", (), [3, "y"]),
    ("<|im|>x", (7,), [4]),
    ("<|im|>x", (0,), [4]),
    ("<|im|>x", (6,), [3, "x"]),
    ("<|im|>x", (1,), ["<|im|>x"]),
    ("<s>a<s>", (1,), ["<s>a", 1]),
    ("<s>a<s>", (5,), [1, "a<s>"]),
    ("a \n[T] b", (), ["a", 5, " b"]),
    ("</s> \n b", (), [2, "b"]),
    ("</s> <s>", (), [2, 1]),
    ("a  b", (), ["a", 6, "b"]),
    ("a  b", (2,), ["a  b"]),
]


@pytest.mark.parametrize(("text", "seams", "parts"), SPLITS)
def test_split(text: str, seams: tuple[int, ...], parts: list[int | str]) -> None:
    assert list(split_controls(RenderedPrompt(text, seams), TABLE)) == parts


def test_a_spelling_inside_one_that_is_plain_still_counts() -> None:
    table = ControlTable({"<<s>": 1, "<s>": 2})
    assert list(split_controls(RenderedPrompt("<<s><<s>", (1,)), table)) == ["<", 2, 1]


def test_without_spellings_all_is_text() -> None:
    assert list(split_controls(RenderedPrompt("<s>"), ControlTable({}))) == ["<s>"]


SPELLINGS = st.frozensets(st.text(alphabet="<a|>", min_size=1, max_size=4), min_size=1, max_size=6)


@given(text=st.text(alphabet="<a|>", max_size=20), spellings=SPELLINGS)
def test_the_pattern_finds_the_longest_spelling_first_from_the_left(text: str, spellings: frozenset[str]) -> None:
    pattern = compile_spellings(spellings)
    assert pattern is not None
    expected, at = [], 0
    while at < len(text):
        here = max((spelling for spelling in spellings if text.startswith(spelling, at)), key=len, default="")
        if here:
            expected.append(here)
        at += len(here) or 1
    assert pattern.findall(text) == expected


@given(text=st.text(alphabet="<a|>", max_size=20), spellings=SPELLINGS, seams=st.frozensets(st.integers(0, 20)))
def test_nothing_is_lost_and_no_control_token_lies_across_a_seam(
    text: str, spellings: frozenset[str], seams: frozenset[int]
) -> None:
    table = ControlTable({spelling: number for number, spelling in enumerate(sorted(spellings))})
    names = {number: spelling for spelling, number in table.ids.items()}
    prompt = RenderedPrompt(text, tuple(sorted(seam for seam in seams if seam <= len(text))))
    offset = 0
    for part in split_controls(prompt, table):
        spelled = names[part] if isinstance(part, int) else part
        if isinstance(part, int):
            assert not any(offset < seam < offset + len(spelled) for seam in prompt.seams)
        assert text.startswith(spelled, offset)
        offset += len(spelled)
    assert offset == len(text)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("<|im_start|>", True),
        ("<｜User｜>", True),
        ("<start_of_turn>", True),
        ("<think>", False),
        ("<tool_call>", False),
        ("  ", False),
        ("a<|b|>", False),
    ],
)
def test_turn_markers_are_known_by_their_looks(spelling: str, expected: bool) -> None:
    assert looks_like_control(spelling) is expected


@pytest.mark.parametrize(
    ("text", "seams", "expected"),
    [("<s>hi", (), True), ("hi", (), False), ("<s>hi", (1,), False), ("<s>hi", (3,), True), ("", (), False)],
)
def test_a_prompt_knows_whether_the_template_wrote_the_bos(text: str, seams: tuple[int, ...], expected: bool) -> None:
    assert RenderedPrompt(text, seams).has_bos("<s>") is expected
    assert not RenderedPrompt(text, seams).has_bos("")
