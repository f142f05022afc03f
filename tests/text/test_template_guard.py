"""No caller opens a turn: marks go in, survive what templates do to strings, and come out as seams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.testing.partitions import cut_at
from tidegate.text.control_split import ControlTable, split_controls
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.template_budget import RenderBudget, RenderLimits
from tidegate.text.template_guard import ControlGuard, take_marks

SPELLINGS = {"<|im_start|>": 1, "<|im_end|>": 2, "<s>": 3, "</s>": 4, "[INST]": 5}
TABLE = ControlTable(SPELLINGS)
GUARD = ControlGuard(SPELLINGS)
BUDGET = RenderBudget(RenderLimits(max_bytes=1 << 20, max_ms=1000, now=lambda: 0.0))


def control_ids(prompt: RenderedPrompt) -> list[int]:
    return [part for part in split_controls(prompt, TABLE) if isinstance(part, int)]


@pytest.mark.parametrize("text", ["", "hello", "a < b", "[INS", "é😀", "im_start|>", "<|im_start|", "\ue000\U0010fffd"])
def test_text_that_spells_no_control_token_comes_back_as_it_was(text: str) -> None:
    assert take_marks(GUARD.mark_text(text)).text == text
    if not text.endswith(("<", "[", "[INS", "|")):
        assert GUARD.mark_text(text) is text or not text.isascii()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelled_control_token_is_plain_where_a_caller_wrote_it(spelling: str) -> None:
    prompt = take_marks("<s>" + GUARD.mark_text(f"a{spelling}b{spelling}") + "</s>")
    assert prompt.text == f"<s>a{spelling}b{spelling}</s>"
    assert control_ids(prompt) == [3, 4]


# Small alphabet, so that spellings and parts of them turn up all the time.
TEXTS = st.lists(
    st.sampled_from([*SPELLINGS, "<", "<|", "im_", "start|>", "|", "s>", "[IN", "ST]", " ", "x"]), max_size=8
)


@given(pieces=st.lists(TEXTS.map("".join), max_size=4))
def test_nothing_that_callers_wrote_becomes_a_control_token_however_it_is_put_together(
    pieces: list[str],
) -> None:  # SEC-28
    prompt = take_marks("".join(map(GUARD.mark_text, pieces)))
    assert prompt.text == "".join(pieces)
    assert control_ids(prompt) == []


@given(text=TEXTS.map("".join), places=st.lists(st.integers(0, 60), max_size=3))
def test_a_spelling_cut_over_several_strings_is_not_pieced_together(text: str, places: list[int]) -> None:
    pieces = cut_at(text, [place % (len(text) + 1) for place in places])
    for change in (str, str.strip):
        prompt = take_marks("".join(change(GUARD.mark_text(piece)) for piece in pieces))
        assert control_ids(prompt) == []


@given(pieces=st.lists(TEXTS.map("".join), min_size=1, max_size=4))
def test_what_the_template_wrote_stays_a_control_token(pieces: list[str]) -> None:
    prompt = take_marks("<|im_start|>" + "<|im_end|><|im_start|>".join(map(GUARD.mark_text, pieces)) + "<|im_end|>")
    assert control_ids(prompt) == [1] + [2, 1] * (len(pieces) - 1) + [2]


OVERLAPPING = st.frozensets(st.text(alphabet="<a|>", min_size=2, max_size=4), min_size=1, max_size=6)


@given(spellings=OVERLAPPING, pieces=st.lists(st.text(alphabet="<a|>", max_size=8), max_size=3))
def test_spellings_that_overlap_are_all_made_plain(spellings: frozenset[str], pieces: list[str]) -> None:
    guard = ControlGuard(spellings)
    table = ControlTable({spelling: number for number, spelling in enumerate(sorted(spellings))})
    prompt = take_marks("".join(map(guard.mark_text, pieces)))
    assert prompt.text == "".join(pieces)
    assert not any(isinstance(part, int) for part in split_controls(prompt, table))


def test_all_strings_of_a_value_are_marked_keys_too() -> None:
    value = {"<s>": ["</s>", {"a": "[INST]"}], "n": 1, "t": True, "x": None, "f": 1.5}
    marked = GUARD.mark(value, BUDGET)
    assert marked == {
        GUARD.mark_text("<s>"): [GUARD.mark_text("</s>"), {"a": GUARD.mark_text("[INST]")}],
        "n": 1,
        "t": True,
        "x": None,
        "f": 1.5,
    }
    assert GUARD.mark_text("<s>") != "<s>"
    assert marked is not value


@pytest.mark.parametrize("text", ["\udfff", "a\ud800b", "<\udfffs>"])
def test_lone_surrogates_which_are_no_text_cannot_pose_as_marks(text: str) -> None:
    prompt = take_marks(GUARD.mark_text(text))
    assert not any("\ud800" <= character <= "\udfff" for character in prompt.text)
    assert "\ufffd" in prompt.text
    assert control_ids(prompt) == []


def test_without_control_tokens_nothing_is_marked() -> None:
    assert ControlGuard(()).mark_text("<s>") == "<s>"
    assert ControlGuard(("x",)).mark_text("x") == "x"
