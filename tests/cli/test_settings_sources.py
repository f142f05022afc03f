"""File, environment and flags: who wins, what is refused, and in which words."""

from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import Resolved, SettingsError, resolve


def from_sources(
    folder: Path, toml: str = "", environment: dict[str, str] | None = None, flags: dict[str, Any] | None = None
) -> Resolved:
    file = folder / "tidegate.toml"
    file.write_text(toml, "utf-8")
    return resolve(file, environment or {}, flags or {}, is_file_required=True)


def test_without_any_source_everything_has_its_default_and_no_origin(tmp_path: Path) -> None:
    resolved = resolve(tmp_path / "absent.toml", {}, {}, is_file_required=False)
    assert resolved.settings == Settings()
    assert resolved.origins == {}


def test_environment_beats_file_and_flag_beats_both(tmp_path: Path) -> None:
    toml = "[server]\nport = 1\nadmin_port = 2\nworkers = 3\n"
    environment = {"TIDEGATE_SERVER__ADMIN_PORT": "20", "TIDEGATE_SERVER__WORKERS": "30"}
    resolved = from_sources(tmp_path, toml, environment, {"server.workers": 40, "server.host": None})
    server = resolved.settings.server
    assert (server.port, server.admin_port, server.workers) == (1, 20, 40)
    assert resolved.origins == {
        "server.port": str(tmp_path / "tidegate.toml"),
        "server.admin_port": "environment TIDEGATE_SERVER__ADMIN_PORT",
        "server.workers": "flag server.workers",
    }


def test_a_flag_is_named_as_it_is_spelled(tmp_path: Path) -> None:
    given = {"engine.kind": "scripted"}
    resolved = resolve(None, {}, given, is_file_required=False, flag_names={"engine.kind": "flag --engine"})
    assert resolved.origins == {"engine.kind": "flag --engine"}


ENVIRONMENT_VALUES: list[tuple[str, str, str, object]] = [
    ("TIDEGATE_MODEL__SERVED_MODEL_NAME", "a, b,,c", "model.served_model_name", ("a", "b", "c")),
    ("TIDEGATE_ENGINE__TENSOR_SPLIT", "0.5,1.5", "engine.tensor_split", (0.5, 1.5)),
    ("TIDEGATE_SERVER__HEARTBEAT_S", "2.5", "server.heartbeat_s", 2.5),
    ("TIDEGATE_ENGINE__SIMULATED_COST", "true", "engine.simulated_cost", True),
    ("TIDEGATE_ENGINE__THREADS", "3", "engine.threads", 3),
    ("TIDEGATE_ADMISSION__QUEUE_FULL_STATUS", "503", "admission.queue_full_status", 503),
    ("tidegate_server__port".upper(), "9000", "server.port", 9000),
]


@pytest.mark.parametrize(("name", "text", "setting", "value"), ENVIRONMENT_VALUES)
def test_text_from_the_environment_gets_the_settings_type(name: str, text: str, setting: str, value: object) -> None:
    settings = resolve(None, {name: text}, {}, is_file_required=False).settings
    section, _, key = setting.partition(".")
    assert getattr(getattr(settings, section), key) == value


def test_variables_without_a_double_underscore_are_not_ours(tmp_path: Path) -> None:
    kubernetes = {"TIDEGATE_PORT": "tcp://10.0.0.1:8000", "TIDEGATE_SERVICE_HOST": "10.0.0.1", "TIDEGATE_CONFIG": "x"}
    assert resolve(None, kubernetes, {}, is_file_required=False).settings == Settings()


REFUSED: list[tuple[str, dict[str, str], dict[str, Any], tuple[str, ...]]] = [
    ("[sever]\nport = 1\n", {}, {}, ("[sever]", "tidegate.toml", "Did you mean server?")),
    ("[server]\nprot = 1\n", {}, {}, ("server.prot", "tidegate.toml", "Did you mean port?")),
    ("[server]\nxyzzy = 1\n", {}, {}, ("server.xyzzy", "Known are:", "heartbeat_s")),
    ("server = 1\n", {}, {}, ("[server]", "must be a table")),
    ("[server]\nport = 70000\n", {}, {}, ("server.port", "tidegate.toml", "65535", "70000")),
    ('[server]\nport = "80"\n', {}, {}, ("server.port", "int", "'80'")),
    ("[engine]\nmax_sequences = 0\n", {}, {}, ("engine.max_sequences", ">= 1")),
    ("[server]\nport = = 1\n", {}, {}, ("not valid TOML",)),
    ("", {"TIDEGATE_ENGIN__KIND": "x"}, {}, ("[engin]", "TIDEGATE_ENGIN__KIND", "Did you mean engine?")),
    ("", {"TIDEGATE_ENGINE__KINDS": "x"}, {}, ("engine.kinds", "TIDEGATE_ENGINE__KINDS", "Did you mean kind?")),
    ("", {"TIDEGATE_ENGINE__KIND": "vllmm"}, {}, ("engine.kind", "environment TIDEGATE_ENGINE__KIND", "'vllmm'")),
    ("", {"TIDEGATE_SERVER__PORT": "many"}, {}, ("server.port", "environment", "'many'")),
    ("", {}, {"server.port": -1}, ("server.port", "flag server.port", ">= 0", "-1")),
]


@pytest.mark.parametrize(("toml", "environment", "flags", "words"), REFUSED)
def test_what_cannot_be_used_is_refused_naming_setting_source_and_remedy(
    tmp_path: Path, toml: str, environment: dict[str, str], flags: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError) as caught:
        from_sources(tmp_path, toml, environment, flags)
    for word in words:
        assert word in str(caught.value)


def test_a_named_file_must_exist_and_be_readable(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml does not exist"):
        resolve(tmp_path / "missing.toml", {}, {}, is_file_required=True)
    with pytest.raises(SettingsError, match="cannot be read"):
        resolve(tmp_path, {}, {}, is_file_required=True)
    (tmp_path / "latin.toml").write_bytes(b'[server]\nhost = "\xe9"\n')
    with pytest.raises(SettingsError, match="not valid TOML"):
        resolve(tmp_path / "latin.toml", {}, {}, is_file_required=True)
