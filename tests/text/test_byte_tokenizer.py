"""One token a byte, and scripts with tokens of their own."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tidegate.testing.check_tokenizer import check_tokenizer
from tidegate.text.byte_tokenizer import (
    BOS_TOKEN,
    BOS_TOKEN_ID,
    EOS_TOKEN,
    EOS_TOKEN_ID,
    FIRST_PIECE_ID,
    ByteTokenizer,
    ByteVocabulary,
    tokenize_pieces,
)
from tidegate.text.rendered_prompt import RenderedPrompt

NAUGHTY = json.loads((Path(__file__).parents[1] / "data/naughty-strings/blns.json").read_text("utf-8"))


def test_it_is_a_tokenizer() -> None:
    check_tokenizer(ByteTokenizer(), [*NAUGHTY, BOS_TOKEN, f"a{EOS_TOKEN}b", "<|bos", "\x00", "\ufffd"])


def test_text_is_its_bytes() -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.encode("aé", add_special=True, parse_special=False) == [97, 0xC3, 0xA9]


def test_spelled_control_tokens_are_read_only_where_allowed() -> None:
    tokenizer = ByteTokenizer()
    text = f"{BOS_TOKEN}a{EOS_TOKEN}"
    assert tokenizer.encode(text, add_special=True, parse_special=True) == [BOS_TOKEN_ID, 97, EOS_TOKEN_ID]
    assert tokenizer.encode(text, add_special=True, parse_special=False) == list(text.encode())
    seam = (len(text) - 2,)
    assert tokenizer.encode_chat(RenderedPrompt(text, seam)) == [BOS_TOKEN_ID, 97, *EOS_TOKEN.encode()]


def test_decoding_shows_control_tokens_only_when_asked() -> None:
    token_ids = [BOS_TOKEN_ID, 97, EOS_TOKEN_ID]
    assert ByteTokenizer().decode(token_ids) == "a"
    assert ByteTokenizer().decode(token_ids, skip_special=False) == f"{BOS_TOKEN}a{EOS_TOKEN}"


@given(pieces=st.lists(st.binary(max_size=4), max_size=20))
def test_every_piece_of_a_script_is_one_token_with_its_bytes(pieces: list[bytes]) -> None:
    token_ids, vocabulary = tokenize_pieces(ByteVocabulary(), pieces)
    assert [vocabulary.token_bytes(token_id) for token_id in token_ids] == pieces
    assert len(set(token_ids)) == len(set(pieces))
    assert all(token_id < vocabulary.size for token_id in token_ids)
    for piece, token_id in zip(pieces, token_ids, strict=True):
        assert (token_id == piece[0]) if len(piece) == 1 else (token_id >= FIRST_PIECE_ID)


def test_a_scripted_vocabulary_keeps_the_control_tokens_and_survives_strangers() -> None:
    _, vocabulary = tokenize_pieces(ByteVocabulary(), [b"ab"])
    assert (vocabulary.bos_token_id, vocabulary.eos_token_ids) == (BOS_TOKEN_ID, (EOS_TOKEN_ID,))
    assert vocabulary.token_bytes(EOS_TOKEN_ID) == EOS_TOKEN.encode()
    assert vocabulary.is_special(EOS_TOKEN_ID)
    assert [vocabulary.token_bytes(token_id) for token_id in (-5, 400, 513, 10**9)] == [b""] * 4
