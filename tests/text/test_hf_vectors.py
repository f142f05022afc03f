"""GPT-2's own vocabulary through the `tokenizers` library: ids that llama.cpp's tests expect, bytes that it has."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tidegate.testing.check_tokenizer import check_tokenizer
from tidegate.text.gguf_tokenizer import GgufTokenizer
from tidegate.text.hf_tokenizer import HfFiles, HfTokenizer

DATA = Path(__file__).parents[1] / "data"
VECTORS = json.loads((DATA / "tokenization/llamacpp_vocab_cases.json").read_text("utf-8"))
NAUGHTY = json.loads((DATA / "naughty-strings/blns.json").read_text("utf-8"))
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class MetadataReader:
    """Reads the metadata of a GGUF file (version 3): key, type, value, all little-endian."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4

    def read(self) -> dict[str, Any]:
        self._number("<I")
        self._number("<Q")
        return {self._string(): self._value(self._number("<I")) for _ in range(self._number("<Q"))}

    def _number(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return value

    def _string(self) -> str:
        length = self._number("<Q")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._string()
        if kind == 9:
            item_kind = self._number("<I")
            return [self._value(item_kind) for _ in range(self._number("<Q"))]
        return self._number(SCALARS[kind])


@pytest.fixture(scope="module")
def gguf() -> bytes:
    return gzip.decompress((DATA / "tokenization/ggml-vocab-gpt-2.gguf.gz").read_bytes())


@pytest.fixture(scope="module")
def gpt2(gguf: bytes) -> HfTokenizer:
    metadata = MetadataReader(gguf).read()
    tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    library = tokenizers.Tokenizer(models.BPE(vocab, [tuple(merge.split(" ")) for merge in merges]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(["<|endoftext|>"])
    return HfTokenizer(HfFiles(library.to_str()))


def test_ids_are_those_that_llama_cpp_expects(gpt2: HfTokenizer) -> None:
    pairs = VECTORS["gpt-2"]["pairs"]
    wrong = [
        pair["text"]
        for pair in pairs
        if gpt2.encode(pair["text"], add_special=True, parse_special=False) != pair["ids"]
    ]
    assert wrong == []


def test_it_gives_every_string_back(gpt2: HfTokenizer) -> None:
    check_tokenizer(gpt2, [*NAUGHTY, *(pair["text"] for pair in VECTORS["gpt-2"]["pairs"])])


def test_every_token_has_the_same_bytes_in_both_forms(gpt2: HfTokenizer, gguf: bytes, tmp_path: Path) -> None:
    path = tmp_path / "gpt-2.gguf"
    path.write_bytes(gguf)
    other = GgufTokenizer(str(path)).vocabulary
    ours = gpt2.vocabulary
    assert ours.size == other.size
    assert [ours.token_bytes(i) for i in range(ours.size)] == [other.token_bytes(i) for i in range(other.size)]
