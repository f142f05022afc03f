"""`tidegate doctor` and `tidegate models` as they are run, without any network."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import doctor_facts as facts
from tidegate.cli.doctor_command import look
from tidegate.cli.finding import Finding, Level
from tidegate.cli.main import cli
from tidegate.cli.model_source import ModelSource
from tidegate.cli.models_command import argument_of, print_models
from tidegate.cli.settings import EngineSettings, ModelSettings, ServerSettings, Settings

NO_PORTS = ServerSettings(port=0, admin_port=0)


class EmptyHub:
    """A cache with nothing in it, and no network."""

    def list_files(self, repo: str) -> list[str]:
        raise AssertionError(f"asked the network about {repo}")

    def download(self, repo: str, file: str) -> Path:
        raise AssertionError(f"asked the network for {repo}:{file}")

    def cached(self) -> dict[str, dict[str, Path]]:
        return {}


def examine(settings: Settings, *, starts_engine: bool = False) -> dict[str, Finding]:
    """Returns the worst finding for each subject."""
    worst: dict[str, Finding] = {}
    order = list(Level)
    for finding in look(settings, facts.OfflineHub(EmptyHub()), starts_engine=starts_engine):
        known = worst.get(finding.subject)
        if known is None or order.index(finding.level) > order.index(known.level):
            worst[finding.subject] = finding
    return worst


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="tidegate")


def test_a_healthy_machine_has_no_problem_and_status_0() -> None:
    result = run("doctor", "--engine", "scripted", "--port", "0", "--admin-port", "0")
    assert result.exit_code == 0, result.output
    assert "0 problems" in result.output
    assert "--start" in result.output


@pytest.mark.process
def test_the_engine_is_started_and_ended_when_asked() -> None:
    found = examine(Settings(engine=EngineSettings(kind="scripted"), server=NO_PORTS), starts_engine=True)
    assert found["engine"].level is Level.OK
    assert "was ready after" in found["engine"].found


def test_an_engine_that_would_refuse_its_options_is_found_before_it_is_started() -> None:
    engine = EngineSettings(kind="simulated", max_sequences=200, max_step_tokens=100)
    found = examine(Settings(engine=engine, server=NO_PORTS), starts_engine=True)
    assert found["settings"].level is Level.PROBLEM
    assert "max_step_tokens" in found["settings"].found
    assert "engine" not in found


def test_a_taken_port_is_a_problem_and_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("doctor", "--engine", "scripted", "--port", str(port), "--admin-port", "0")
    assert result.exit_code == 1
    assert "the port is taken" in result.output
    assert f"--port {port + 1}" in result.output


def test_one_port_for_both_listeners_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = Settings(engine=EngineSettings(kind="scripted"), server=ServerSettings(port=port, admin_port=port))
    assert examine(settings)["admin port"].level is Level.PROBLEM


def test_addresses_that_others_reach_are_pointed_out() -> None:
    server = ServerSettings(host="0.0.0.0", port=0, admin_host="0.0.0.0", admin_port=0)
    found = look(
        Settings(engine=EngineSettings(kind="scripted"), server=server),
        facts.OfflineHub(EmptyHub()),
        starts_engine=False,
    )
    levels = {finding.subject: finding.level for finding in found}
    assert (levels["keys"], levels["admin"]) == (Level.PROBLEM, Level.PROBLEM)


def test_a_model_that_would_be_downloaded_is_not() -> None:
    found = examine(Settings(model=ModelSettings(source="some/model-GGUF"), server=NO_PORTS))
    assert found["model file"].level is Level.WARNING
    assert "will download" in found["model file"].found


def test_a_file_that_is_no_model_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "pointer.gguf"
    path.write_text("version https://git-lfs.github.com/spec/v1\n", "utf-8")
    found = examine(Settings(model=ModelSettings(source=str(path)), server=NO_PORTS))
    assert found["model file"].level is Level.PROBLEM
    assert "Git LFS" in (found["model file"].advice or "")
    assert "chat template" not in found


def test_absent_shards_are_named(tmp_path: Path) -> None:
    path = tmp_path / "big-00001-of-00003.gguf"
    path.write_bytes(b"GGUF")
    file = facts.model_file_facts(ModelSource(path, "big", "file"))
    assert file.missing == ("big-00002-of-00003.gguf", "big-00003-of-00003.gguf")


@pytest.mark.model
def test_the_bundled_model_passes() -> None:
    found = examine(Settings(server=NO_PORTS))
    assert found["model file"].level is Level.OK
    assert found["chat template"].found == "the model's own; it compiles"
    assert "weights" in found["memory"].found


def test_a_template_that_does_not_compile_is_found(tmp_path: Path) -> None:
    template = tmp_path / "broken.jinja"
    template.write_text("{% for %}", "utf-8")
    model = ModelSettings(chat_template=str(template))
    found = examine(Settings(engine=EngineSettings(kind="scripted"), model=model, server=NO_PORTS))
    assert found["chat template"].level is Level.PROBLEM
    assert "line 1" in found["chat template"].found


def test_models_are_listed_under_the_words_that_serve_takes(capsys: pytest.CaptureFixture[str]) -> None:
    package = ModelSource(Path("x.gguf"), "X", "package llm-x")
    cached = ModelSource(Path("y.gguf"), "org/name", "Hugging Face cache, org/name:y.gguf")
    assert argument_of(package) == "llm-x"
    assert argument_of(cached) == "org/name:y.gguf"
    print_models(EmptyHub())
    assert "tidegate serve" in capsys.readouterr().out


def test_a_damaged_file_in_the_cache_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")

    class Hub(EmptyHub):
        def cached(self) -> dict[str, dict[str, Path]]:
            return {"org/name": {"bad.gguf": tmp_path / "bad.gguf"}}

    print_models(Hub())
    output = capsys.readouterr().out
    assert "org/name:bad.gguf" in output
    assert "cannot be read" in output
