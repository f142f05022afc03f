"""The operators' commands of docs/pool.md work pasted, in order, against two engines."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.pool_view import engine_rows
from harness.server_process import ServerProcess
from tidegate.cli.engines_command import engines
from tidegate.cli.main import cli
from tidegate.engines.pool.member_states import MemberState

PAGE = (Path(__file__).parents[2] / "docs" / "pool.md").read_text("utf-8")
SECTION = PAGE.partition("## Operators")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
COMMANDS = [[shlex.split(line, comments=True) for line in block.splitlines()] for block in BLOCKS]


@pytest.fixture(scope="module")
def program() -> Iterator[ServerProcess]:
    with ServerProcess("simulated", engine__replicas=2, engine__restart_wait_s=0.01) as running:
        yield running


@pytest.mark.process
def test_the_commands_of_the_program_work_pasted(program: ServerProcess) -> None:
    for words in COMMANDS[0]:
        assert words[0] == "tidegate"
        where = {"TIDEGATE_SERVER__ADMIN_PORT": str(program.admin_port)}
        done = CliRunner().invoke(cli, words[1:], env=where)
        assert done.exit_code == 0, (words, done.output)
    assert sorted(engine_rows(program.admin_port)) == ["engine-1", "engine-2"]


@pytest.mark.process
def test_the_same_works_with_curl(program: ServerProcess) -> None:
    for words in COMMANDS[1]:
        here = [word.replace("127.0.0.1:9464", f"127.0.0.1:{program.admin_port}") for word in words]
        done = subprocess.run([*here, "--fail"], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert "error" not in json.loads(done.stdout)
    assert sorted(engine_rows(program.admin_port)) == ["engine-1", "engine-2"]


def test_the_page_names_every_command_and_every_state() -> None:
    for name in engines.commands:
        assert f"tidegate engines {name}" in SECTION
    for state in MemberState:
        assert f"`{state.value}`" in SECTION
