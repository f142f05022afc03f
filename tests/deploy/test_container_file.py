"""The image's recipe, as far as can be told without a builder: its files, commands, ports and accounts are real."""

import json
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest
from click.testing import CliRunner

from harness.deployments import DEPLOY, deployed, documents
from harness.programs import find_program
from tidegate.cli.main import cli
from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve
from tidegate.http.routes_api import OPEN_API_PATHS

ROOT = DEPLOY.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("redis", "telemetry")


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, comments left out and continued lines joined."""
    lines = [line for line in deployed("container/Dockerfile").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = (line.partition(" ") for line in joined.splitlines() if line)
    return [(word, rest.strip()) for word, _, rest in pairs]


def arguments_of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a path of the repository through to the builder."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        if any(fnmatch(str(part), pattern) for part in (PurePosixPath(path), *PurePosixPath(path).parents[:-1])):
            sent = line.startswith("!")
    return sent


def test_whatever_is_copied_is_there_and_is_sent_to_the_builder() -> None:
    copied = [words for words in map(str.split, arguments_of("COPY")) if not words[0].startswith("--from")]
    sources = [source for *files, _ in copied for source in files]
    assert "src" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert is_sent(source), source
    assert not is_sent("tests")


def test_the_lock_has_all_that_the_server_needs_and_nothing_unchecked() -> None:
    (line,) = [rest for rest in arguments_of("RUN") if "--require-hashes" in rest]
    name = re.search(r"--requirement (\S+)", line)
    assert name is not None
    text = (ROOT / name[1]).read_text()
    locked = {found.lower() for found in re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.MULTILINE)}
    wanted = [*PROJECT["dependencies"], *(one for extra in EXTRAS for one in PROJECT["optional-dependencies"][extra])]
    assert {re.split(r"[<>=;\[ ]", one)[0].lower() for one in wanted} <= locked
    assert text.count("--hash=") >= len(locked)
    served = (ROOT / "requirements" / "serve.lock").read_text()
    pins = set(re.findall(r"^([A-Za-z0-9_.-]+==\S+)", text, re.MULTILINE))
    assert set(re.findall(r"^([A-Za-z0-9_.-]+==\S+)", served, re.MULTILINE)) <= pins, "tested versions are shipped"


def test_python_is_new_enough() -> None:
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    for image in arguments_of("FROM"):
        found = re.match(r"python:(\d+)\.(\d+)-", image)
        assert found is not None
        assert (int(found[1]), int(found[2])) >= least


def test_the_command_is_one_of_the_program() -> None:
    (program,) = json.loads(arguments_of("ENTRYPOINT")[0])
    assert program in PROJECT["scripts"]
    command, *rest = json.loads(arguments_of("CMD")[0])
    assert command == "serve"
    shown = CliRunner().invoke(cli, ["config", *rest])
    assert shown.exit_code == 0, shown.output
    assert "server.host" in shown.output


def test_ports_paths_and_environment_are_those_of_the_server() -> None:
    server = Settings().server
    assert arguments_of("EXPOSE") == [f"{server.port} {server.admin_port}"]
    asked = re.search(rf"http://127\.0\.0\.1:{server.port}(/\w+)", arguments_of("HEALTHCHECK")[0])
    assert asked is not None
    assert asked[1].encode() in OPEN_API_PATHS
    pairs = dict(pair.split("=", 1) for line in arguments_of("ENV") for pair in line.split())
    given = {name: value for name, value in pairs.items() if name.startswith("TIDEGATE_")}
    state_dir = resolve(None, given, {}, is_file_required=False).settings.server.state_dir
    assert arguments_of("VOLUME") == [state_dir]
    assert any(f"--mode 0700 {state_dir}" in line for line in arguments_of("RUN"))


def test_the_account_is_the_one_of_the_manifests() -> None:
    (deployment,) = [one for one in documents("kubernetes/server.yaml") if one["kind"] == "Deployment"]
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert arguments_of("USER") == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    made = " ".join(arguments_of("RUN"))
    assert f"--uid {context['runAsUser']}" in made
    assert f"--gid {context['runAsGroup']}" in made


@pytest.mark.process
def test_a_linter_of_such_files_has_no_word_to_say() -> None:
    command = [find_program("hadolint"), "--failure-threshold", "style", str(DEPLOY / "container" / "Dockerfile")]
    judged = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (judged.returncode, judged.stdout) == (0, "")


def test_the_recipe_is_where_its_first_line_says() -> None:
    first = deployed("container/Dockerfile").splitlines()[0]
    named = re.search(r"--file (\S+)", first)
    assert named is not None
    assert (ROOT / Path(named[1])).is_file()
