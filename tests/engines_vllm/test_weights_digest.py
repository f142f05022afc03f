"""Which weights a folder holds."""

from pathlib import Path

import pytest

from tidegate.engines.vllm import weights_digest
from tidegate.engines.vllm.weights_digest import digest_folder


def make_folder(folder: Path, weights: bytes = b"w" * 5000, config: str = "{}") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(config)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "README.md").write_text("not weights")
    return folder


def test_the_same_weights_anywhere_have_the_same_digest(tmp_path: Path) -> None:
    first = digest_folder(make_folder(tmp_path / "a"))
    assert first == digest_folder(make_folder(tmp_path / "b"))
    (tmp_path / "a" / "README.md").write_text("other words")
    assert first == digest_folder(tmp_path / "a")


@pytest.mark.parametrize(
    ("weights", "config"),
    [(b"w" * 5001, "{}"), (b"w" * 4999 + b"x", "{}"), (b"w" * 5000, '{"a":1}'), (b"", "{}")],
    ids=["another size", "another last byte", "another configuration", "nothing"],
)
def test_other_weights_have_another(tmp_path: Path, weights: bytes, config: str) -> None:
    other = digest_folder(make_folder(tmp_path / "b", weights, config))
    assert digest_folder(make_folder(tmp_path / "a")) != other


def test_of_large_files_the_beginning_and_samples_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_digest, "HEAD_BYTES", 100)
    monkeypatch.setattr(weights_digest, "NUM_SAMPLES", 2)
    monkeypatch.setattr(weights_digest, "SAMPLE_BYTES", 10)
    weights = bytearray(1000)
    first = digest_folder(make_folder(tmp_path / "a", bytes(weights)))
    weights[500] = 1
    assert digest_folder(make_folder(tmp_path / "b", bytes(weights))) == first
    weights[99] = 1
    assert digest_folder(make_folder(tmp_path / "c", bytes(weights))) != first
    weights[99], weights[999] = 0, 1
    assert digest_folder(make_folder(tmp_path / "d", bytes(weights))) != first
