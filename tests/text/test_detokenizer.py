"""Tokens to text: every cut of the bytes gives the same text, at once and without loss."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.testing.partitions import cut_at, partitions
from tidegate.text.byte_tokenizer import EOS_TOKEN, EOS_TOKEN_ID, ByteVocabulary, tokenize_pieces
from tidegate.text.detokenizer import Detokenizer, decode_tokens

CASES = json.loads((Path(__file__).parents[1] / "data/utf8/cases.json").read_text("utf-8"))


def stream(pieces: list[bytes]) -> list[str]:
    """Returns the text of each piece, and of the end."""
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), pieces)
    detokenizer = Detokenizer(vocabulary, skip_special=True)
    return [*map(detokenizer.feed, token_ids), detokenizer.finish()]


@pytest.mark.parametrize("case", CASES["strings"], ids=lambda case: case["id"])
def test_every_cut_of_valid_text_gives_whole_characters_only(case: dict[str, str]) -> None:  # SSE-7
    data = bytes.fromhex(case["utf8_hex"])
    assert data.decode() == case["text"]
    for pieces in partitions(data):
        texts = stream(pieces)
        assert "".join(texts) == case["text"]
        assert texts[-1] == ""


@pytest.mark.parametrize("case", CASES["split_points"], ids=str)
def test_a_cut_inside_a_character_never_shows(case: dict[str, object]) -> None:
    texts = {item["id"]: item for item in CASES["strings"]}
    item = texts[case["id"]] if "id" in case else case
    data = bytes.fromhex(item["utf8_hex"])
    offsets = next(value for key, value in case.items() if isinstance(value, list))
    joined = stream(cut_at(data, offsets))
    assert "".join(joined) == data.decode()
    if "\ufffd" not in data.decode():
        assert not any("\ufffd" in text for text in joined)


@pytest.mark.parametrize("case", CASES["invalid_byte_sequences"], ids=lambda case: case.get("id", case.get("hex")))
def test_invalid_bytes_become_one_replacement_for_each_maximal_subpart(case: dict[str, str]) -> None:
    data = bytes.fromhex(next(value for key, value in case.items() if "hex" in key))
    for pieces in partitions(data):
        assert "".join(stream(pieces)) == data.decode("utf-8", "replace")


@given(data=st.binary(max_size=40), places=st.lists(st.integers(0, 40), max_size=10))
def test_any_bytes_in_any_cut_decode_as_the_whole(data: bytes, places: list[int]) -> None:
    pieces = cut_at(data, [place % (len(data) + 1) for place in places])
    assert "".join(stream(pieces)) == data.decode("utf-8", "replace")


@given(data=st.binary(max_size=40))
def test_nothing_is_kept_back_but_the_beginning_of_a_character(data: bytes) -> None:
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), [data])
    detokenizer = Detokenizer(vocabulary, skip_special=True)
    for token_id in token_ids:
        detokenizer.feed(token_id)
    kept = data[len(data) - detokenizer.num_pending_bytes :]
    assert len(kept) <= 3
    completions = (bytes(tail) for tail in ([0x80], [0x80] * 2, [0x80] * 3, [0xBF], [0xBF] * 2, [0xBF] * 3))
    assert kept == b"" or any(_is_one_character(kept + tail) for tail in completions)


def _is_one_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


# bytes, texts after each byte, text at the end
STEPS = [
    ("ff62", ["\ufffd", "b"], ""),
    ("c328", ["", "\ufffd("], ""),
    ("e28261", ["", "", "\ufffda"], ""),
    ("f09f98", ["", "", ""], "\ufffd"),
    ("eda080", ["", "\ufffd\ufffd", "\ufffd"], ""),
    ("f08080", ["", "\ufffd\ufffd", "\ufffd"], ""),
    ("c080", ["\ufffd", "\ufffd"], ""),
    ("efbfbd", ["", "", "\ufffd"], ""),
    ("f4908080", ["", "\ufffd\ufffd", "\ufffd", "\ufffd"], ""),
]


@pytest.mark.parametrize(("data", "texts", "end"), STEPS)
def test_what_can_never_become_a_character_is_replaced_in_the_step_that_shows_it(
    data: str, texts: list[str], end: str
) -> None:
    assert stream([bytes([byte]) for byte in bytes.fromhex(data)]) == [*texts, end]


def test_control_tokens_are_invisible_unless_asked_for() -> None:
    token_ids = [ord("a"), EOS_TOKEN_ID, ord("b")]
    for skip_special, expected in ((True, "ab"), (False, f"a{EOS_TOKEN}b")):
        detokenizer = Detokenizer(ByteVocabulary(), skip_special=skip_special)
        assert "".join(map(detokenizer.feed, token_ids)) + detokenizer.finish() == expected
        assert decode_tokens(ByteVocabulary(), token_ids, skip_special=skip_special) == expected


def test_an_invisible_token_inside_a_character_does_not_break_it() -> None:
    detokenizer = Detokenizer(ByteVocabulary(), skip_special=True)
    assert [detokenizer.feed(token_id) for token_id in (0xC3, EOS_TOKEN_ID, 0xA9)] == ["", "", "é"]


def test_unknown_ids_add_nothing() -> None:
    detokenizer = Detokenizer(ByteVocabulary(), skip_special=True)
    assert [detokenizer.feed(token_id) for token_id in (-1, 300, 10**9)] == ["", "", ""]


def test_finishing_twice_adds_nothing() -> None:
    detokenizer = Detokenizer(ByteVocabulary(), skip_special=True)
    detokenizer.feed(0xE2)
    assert [detokenizer.finish(), detokenizer.finish()] == ["\ufffd", ""]


@given(data=st.binary(max_size=30), places=st.lists(st.integers(0, 30), max_size=8))
def test_a_shared_memo_changes_nothing(data: bytes, places: list[int]) -> None:
    pieces = cut_at(data, [place % (len(data) + 1) for place in places])
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), pieces)
    memo: dict[int, str] = {}
    for _ in range(2):
        detokenizer = Detokenizer(vocabulary, skip_special=True, memo=memo)
        assert "".join(map(detokenizer.feed, token_ids)) + detokenizer.finish() == data.decode("utf-8", "replace")
    assert all(
        vocabulary.token_bytes(token_id).decode() == text for token_id, text in memo.items() if "\ufffd" not in text
    )
