"""The command line as a person meets it: help that teaches, settings that are explained, mistakes that are named."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate import __version__
from tidegate.cli.main import SERVE_FLAGS, cli
from tidegate.cli.settings import SECTIONS


def run(*arguments: str, environment: dict[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, env={"COLUMNS": "110", **(environment or {})}, prog_name="tidegate")


HELP_MENTIONS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    ((), ("serve", "doctor", "models", "config", "--version")),
    (("serve",), ("GGUF", "Hugging Face", "--config", "SIGTERM", "tidegate.toml", "TIDEGATE_SERVER__PORT", "Examples")),
    (("config",), ("where each came from", "--all", "--config")),
    (("doctor",), ("--start", "exit code", "--engine")),
    (("models",), ("this machine",)),
]


@pytest.mark.parametrize(("command", "words"), HELP_MENTIONS)
def test_help_mentions_what_it_must(command: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    for word in words:
        assert word in result.output


def test_help_of_serve_shows_every_flag_with_its_setting_and_default() -> None:
    text = " ".join(run("serve", "--help").output.split())
    for flag, (name, _) in SERVE_FLAGS.items():
        section, _, key = name.partition(".")
        assert f"{flag} " in text
        assert f"[{name}]" in text
        default = getattr(SECTIONS[section](), key)
        assert default in (None, (), {}) or f"(default {default})" in text
    for section in {name.partition(".")[0] for name, _ in SERVE_FLAGS.values()}:
        assert f"{section.capitalize()}: --" in text


def test_every_flag_names_a_setting() -> None:
    for name, _ in SERVE_FLAGS.values():
        section, _, key = name.partition(".")
        assert key in SECTIONS[section].__struct_fields__


def test_version_is_the_packages() -> None:
    assert __version__ in run("--version").output


def test_config_shows_values_and_their_sources(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 50)
    folder.mkdir()
    file = folder / "mine.toml"
    file.write_text("[server]\nport = 9001\n[model]\nserved_model_name = ['[bold]x']\n", "utf-8")
    environment: dict[str, str | None] = {"TIDEGATE_ENGINE__MAX_SEQUENCES": "7"}
    result = run("config", "m.gguf", "--config", str(file), "--engine", "scripted", environment=environment)
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines() if line}
    assert "9001" in lines["server.port"]
    assert str(file) in lines["server.port"], "however long its path is"
    assert "environment TIDEGATE_ENGINE__MAX_SEQUENCES" in lines["engine.max_sequences"]
    assert "flag --engine" in lines["engine.kind"]
    assert "argument MODEL" in lines["model.source"]
    assert "[bold]x" in lines["model.served_model_name"]
    assert "server.host" not in lines
    assert "have their defaults" in result.output


def test_config_all_shows_every_setting_on_a_line_of_its_own() -> None:
    output = run("config", "--all").output
    lines = {line.split()[0] for line in output.splitlines() if line.strip()}
    for section, kind in SECTIONS.items():
        assert {f"{section}.{key}" for key in kind.__struct_fields__} <= lines


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "named.toml"
    file.write_text("[log]\nlevel = 'debug'\n", "utf-8")
    assert "debug" in run("config", environment={"TIDEGATE_CONFIG": str(file)}).output
    missing = run("config", environment={"TIDEGATE_CONFIG": str(tmp_path / "gone.toml")})
    assert missing.exit_code == 2
    assert "does not exist" in missing.output
    assert run("config", environment={"TIDEGATE_CONFIG": ""}).exit_code == 0


MISTAKES: list[tuple[tuple[str, ...], dict[str, str | None], str]] = [
    (("serve", "--prot", "1"), {}, "--port"),
    (("serve", "--engine", "vllmm"), {}, "scripted"),
    (("serve", "--engine", "vllm"), {}, "tidegate[vllm]"),
    (("serve",), {"TIDEGATE_SERVER__PROT": "1"}, "Did you mean port?"),
    (("config",), {"TIDEGATE_SERVERS__PORT": "1"}, "Did you mean server?"),
    (("doctor", "--max-sequences", "100000"), {}, "engine.max_sequences from flag --max-sequences"),
    (("serve", "no/such/model.gguf"), {}, "no/such/model.gguf"),
]


@pytest.mark.parametrize(("arguments", "environment", "words"), MISTAKES)
def test_mistakes_end_with_status_2_and_name_the_remedy(
    arguments: tuple[str, ...], environment: dict[str, str | None], words: str
) -> None:
    result = run(*arguments, environment=environment)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
