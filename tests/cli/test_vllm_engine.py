"""Settings of vLLM in this process: what leads nowhere is said before anything is started."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import CapturingLogger

from harness.byte_folder import write_byte_folder
from harness.llm_stand_in import StandInLibrary
from tidegate.cli import vllm_engine
from tidegate.cli.engine_option import read_value
from tidegate.cli.load_error import LoadError
from tidegate.cli.main import resolve_settings
from tidegate.cli.model_loading import load_model
from tidegate.cli.remote_settings import idle_settings, is_remote, is_vllm
from tidegate.cli.settings import EngineSettings, ModelSettings, ServerSettings, Settings
from tidegate.cli.settings_sources import SettingsError, resolve
from tidegate.cli.vllm_engine import make_vllm_watch, tokenizer_folder, vllm_plan
from tidegate.cli.vllm_keeper import VllmActs
from tidegate.engines.vllm.installed_vllm import VllmMissing
from tidegate.errors import EngineUnavailable


@pytest.fixture(autouse=True)
def _has_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is not installed where the tests run."""
    monkeypatch.setattr(vllm_engine, "require_vllm", lambda: None)


def vllm_settings(source: str | None, **engine: Any) -> Settings:
    return Settings(model=ModelSettings(source=source), engine=EngineSettings(kind="vllm", **engine))


def test_the_models_own_folder_gives_tokenizer_template_and_name(tmp_path: Path) -> None:
    settings = vllm_settings(str(write_byte_folder(tmp_path / "my-model")))
    loaded = load_model(settings)
    assert loaded.served.name == "my-model"
    assert loaded.served.tokenizer.vocabulary.size == 258
    assert (is_vllm(settings), is_remote(settings)) == (True, False)


class FakeHub:
    """A repository, part of which is in the cache."""

    def __init__(self, folder: Path, files: list[str], cached: tuple[str, ...] = ()) -> None:
        self.downloaded: list[str] = []
        self._folder = folder
        self._files = files
        self._cached = cached

    def list_files(self, repo: str) -> list[str]:
        return self._files

    def download(self, repo: str, file: str) -> Path:
        self.downloaded.append(file)
        return self._folder / file

    def cached(self) -> dict[str, dict[str, Path]]:
        return {"org/model": {name: self._folder / name for name in self._cached}}


def test_of_a_model_on_hugging_face_only_the_small_files_are_fetched(tmp_path: Path) -> None:
    files = ["tokenizer.json", "config.json", "model-00001.safetensors", "tokenizer_config.json"]
    hub = FakeHub(tmp_path, files, cached=("config.json",))
    assert tokenizer_folder(vllm_settings("org/model"), hub) == tmp_path
    assert hub.downloaded == ["tokenizer.json", "tokenizer_config.json"]


def test_what_is_in_the_cache_is_taken_from_there(tmp_path: Path) -> None:
    hub = FakeHub(tmp_path, [], cached=("tokenizer.json", "config.json"))
    assert tokenizer_folder(vllm_settings("org/model"), hub) == tmp_path
    assert hub.downloaded == []


REFUSED: dict[str, tuple[Settings, str]] = {
    "no model": (vllm_settings(None), "needs MODEL"),
    "a folder that is not there": (vllm_settings("/nowhere/model"), "no folder"),
    "neither folder nor id": (vllm_settings("model"), "no folder"),
    "a file": (vllm_settings(__file__), "is a file"),
    "several processes": (
        msgspec.structs.replace(vllm_settings("org/model"), server=ServerSettings(workers=2)),
        "server.workers must be 1",
    ),
    "an option of ours": (vllm_settings("org/model", options={"max_num_seqs": 8}), "engine.max_sequences"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_settings_that_lead_nowhere_are_refused_with_what_to_do(case: tuple[Settings, str]) -> None:
    settings, words = case
    with pytest.raises(LoadError, match=words):
        load_model(settings)


def test_a_repository_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"no tokenizer\.json"):
        tokenizer_folder(vllm_settings("org/model"), FakeHub(tmp_path, ["config.json"]))


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise VllmMissing("pip install it")

    monkeypatch.setattr(vllm_engine, "require_vllm", missing)
    with pytest.raises(LoadError, match="pip install it"):
        load_model(vllm_settings("org/model"))


def test_settings_that_hold_for_every_engine_reach_vllm() -> None:
    settings = msgspec.structs.replace(
        vllm_settings("org/model", max_sequences=7, prefix_cache=False, options={"dtype": "half"}),
        model=ModelSettings(source="org/model", max_model_len=512),
        server=ServerSettings(drain_timeout_s=1.5),
    )
    plan = vllm_plan(settings, Path("/tokenizer"))
    assert (plan.model, plan.tokenizer, plan.max_sequences, plan.max_model_len) == ("org/model", "/tokenizer", 7, 512)
    assert (plan.keeps_prefixes, plan.has_priorities, plan.drain_s) == (False, True, 2)
    assert plan.options == {"dtype": "half"}


def test_settings_of_other_engines_are_told_to_have_no_effect() -> None:
    assert idle_settings(vllm_settings("m", threads=4, url="http://x", options={"a": 1})) == [
        "engine.url",
        "engine.threads",
    ]
    other = Settings(engine=EngineSettings(kind="simulated", options={"a": 1}))
    assert idle_settings(other) == ["engine.options"]


@pytest.mark.parametrize(
    ("text", "value"), [("2", 2), ("true", True), ('{"a": [1]}', {"a": [1]}), ("bfloat16", "bfloat16"), ("", "")]
)
def test_an_option_on_the_command_line_is_json_or_text(text: str, value: object) -> None:
    assert read_value(text) == value


def test_options_come_from_flags_files_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text('[engine]\nkind = "vllm"\n[engine.options]\ntensor_parallel_size = 2\n')
    assert resolve_settings(file, "m", {}).settings.engine.options == {"tensor_parallel_size": 2}
    flags = {"engine__options": {"dtype": "half"}}
    assert resolve_settings(file, "m", flags).settings.engine.options == {"dtype": "half"}
    environment = {"TIDEGATE_ENGINE__OPTIONS": '{"seed": 3}'}
    assert resolve(None, environment, {}, is_file_required=False).settings.engine.options == {"seed": 3}
    with pytest.raises(SettingsError, match="object of JSON"):
        resolve(None, {"TIDEGATE_ENGINE__OPTIONS": "seed=3"}, {}, is_file_required=False)


def test_an_operator_restarts_and_flushes(tmp_path: Path) -> None:
    settings = vllm_settings(str(write_byte_folder(tmp_path / "m")), restart_wait_s=0.001, health_interval_s=0.02)
    loaded = load_model(settings)
    library = StandInLibrary()

    async def run() -> None:
        watch = make_vllm_watch(
            settings, loaded.served, has_compiler=False, take_note=CapturingLogger().info, library=library
        )
        acts = VllmActs(watch)
        with pytest.raises(EngineUnavailable):
            await acts.flush_cache()
        watch.start()
        await watch.wait_ready()
        assert msgspec.json.decode((await acts.flush_cache()).body) == {"freed_blocks": 0, "epoch": 1}
        library.llm.num_live += 1
        with pytest.raises(EngineUnavailable, match="while no request runs"):
            await acts.flush_cache()
        library.llm.num_live -= 1
        reply = await acts.restart_engine(30.0)
        assert (reply.status, msgspec.json.decode(reply.body)) == (200, {"status": "ready", "epoch": 2})
        await watch.aclose()

    asyncio.run(run())
