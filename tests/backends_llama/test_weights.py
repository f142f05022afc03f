import random
from pathlib import Path

import pytest

from tidegate.backends.llama_cpp import weights
from tidegate.backends.llama_cpp.weights import digest_weights, weight_files
from tidegate.sizing.start_error import StartError

CONTENT = b"GGUF" + random.Random(0).randbytes(20_000)


def write(path: Path, content: bytes = CONTENT) -> Path:
    path.write_bytes(content)
    return path


def test_a_digest_covers_every_byte_and_no_name(tmp_path: Path) -> None:
    digest = digest_weights([write(tmp_path / "a.gguf")])
    assert digest.startswith("sha256:")
    assert digest_weights([write(tmp_path / "b.gguf")]) == digest
    for at in (0, 4, 10_000, len(CONTENT) - 1):
        changed = CONTENT[:at] + bytes([CONTENT[at] ^ 1]) + CONTENT[at + 1 :]
        assert digest_weights([write(tmp_path / "a.gguf", changed)]) != digest


def test_where_a_set_is_cut_shows_in_the_digest(tmp_path: Path) -> None:
    first = [write(tmp_path / "a", CONTENT[:100]), write(tmp_path / "b", CONTENT[100:])]
    second = [write(tmp_path / "c", CONTENT[:200]), write(tmp_path / "d", CONTENT[200:])]
    assert digest_weights(first) != digest_weights(second)


def test_a_large_file_is_sampled_and_its_digest_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WHOLE_BYTES": 10_000, "HEAD_BYTES": 1000, "NUM_SAMPLES": 5, "SAMPLE_BYTES": 100}.items():
        monkeypatch.setattr(weights, name, value)
    digest = digest_weights([write(tmp_path / "a.gguf")])
    assert digest.startswith("sha256-sampled:")
    for at, is_seen in ((999, True), (len(CONTENT) - 1, True), (len(CONTENT) // 2, True), (3000, False)):
        changed = CONTENT[:at] + bytes([CONTENT[at] ^ 1]) + CONTENT[at + 1 :]
        assert (digest_weights([write(tmp_path / "a.gguf", changed)]) != digest) == is_seen
    assert digest_weights([write(tmp_path / "a.gguf", CONTENT + b"x")]) != digest


def test_a_shard_stands_for_its_whole_set(tmp_path: Path) -> None:
    files = [write(tmp_path / f"m-Q4-0000{i}-of-00003.gguf") for i in (1, 2, 3)]
    assert weight_files(files[1]) == files
    files[2].unlink()
    with pytest.raises(StartError, match=r"m-Q4-00003-of-00003\.gguf does not exist"):
        weight_files(files[0])


REFUSED = [
    (b"version https://git-lfs.github.com/spec/v1\n", r"a\.gguf is not GGUF .*Git LFS pointer.*download"),
    (b"", r"a\.gguf is not GGUF"),
    (b"PK\x03\x04", r"a\.gguf is not GGUF"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED)
def test_a_file_in_another_format_is_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(StartError, match=message):
        weight_files(write(tmp_path / "a.gguf", content))
