import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.cli.hugging_face import HuggingFace
from tidegate.cli.model_source import find_model

REPO = "org/Some-Model-GGUF"


def make_cache(folder: Path) -> Path:
    """A cache as huggingface_hub lays it out: blobs, and snapshots of links to them."""
    repo = folder / "models--org--Some-Model-GGUF"
    for name in ("m-Q8_0.gguf", "sub/m-Q2_K.gguf", "README.md"):
        blob, link = repo / "blobs" / name.replace("/", "-"), repo / "snapshots" / "0123abcd" / name
        for path in (blob, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(b"GGUF")
        link.symlink_to(blob)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("0123abcd")
    return folder


def test_cached_files_are_known_by_their_path_in_the_repository(tmp_path: Path) -> None:
    cached = HuggingFace(make_cache(tmp_path)).cached()
    assert set(cached) == {REPO}
    assert set(cached[REPO]) == {"m-Q8_0.gguf", "sub/m-Q2_K.gguf", "README.md"}
    assert cached[REPO]["m-Q8_0.gguf"].read_bytes() == b"GGUF"


def test_a_cached_model_is_found_by_repository_and_by_file(tmp_path: Path) -> None:
    hub = HuggingFace(make_cache(tmp_path))
    assert find_model(REPO, hub).path.name == "m-Q8_0.gguf"
    assert find_model(f"{REPO}:m-Q2_K.gguf", hub).path.name == "m-Q2_K.gguf"


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_without_a_cache_nothing_is_cached(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    assert HuggingFace(tmp_path / folder).cached() == {}


@pytest.mark.process
def test_offline_a_model_that_is_not_cached_is_refused_with_the_reason(tmp_path: Path) -> None:
    code = f"from tidegate.cli.model_source import find_model; find_model({REPO!r})"
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert f"{REPO} is not in the local cache, and HF_HUB_OFFLINE forbids fetching it" in done.stderr


def test_looking_for_a_file_loads_no_hub_library() -> None:
    code = "import sys, tidegate.cli.model_source; sys.exit('huggingface_hub' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
