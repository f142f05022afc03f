"""The commands of docs/bench.md work pasted, in order."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.cli.bench_command import bench
from tidegate.loadtest.metric import TIMES
from tidegate.loadtest.sample import MEANINGS
from tidegate.loadtest.workloads import Kind

PAGE = (Path(__file__).parents[2] / "docs" / "bench.md").read_text("utf-8")
SECTION = PAGE.partition("## Try it without a model")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
PROGRAM = '#!/bin/sh\nexec {python} -c "from tidegate.cli.main import main; main()" "$@"\n'


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.process
def test_the_commands_work_pasted(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tidegate"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    script = "\n".join(BLOCKS)
    for port in ("8003", "9467"):
        script = script.replace(port, str(free_port()))
    path = f"{program.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TIDEGATE_SERVER__STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "8 clients at once",
        "20 sessions a second",
        "share of good requests",
        "exit status 0",
        "(by its usage)",
    ):
        assert words in done.stdout, done.stdout + done.stderr
    for name in ("bench.html", "bench.json", "compared.md", "plots/ttft.svg"):
        assert (tmp_path / name).stat().st_size > 500


def test_the_page_names_every_workload_error_and_time() -> None:
    for kind in Kind:
        assert f"`{'FILE.jsonl' if kind is Kind.FILE else kind.value}`" in PAGE
    for name in (*MEANINGS, *TIMES):
        assert f"`{name}`" in PAGE


def test_every_flag_of_the_page_exists() -> None:
    flags = {flag for parameter in bench.params for flag in parameter.opts}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", PAGE)) - {
        "--engine",
        "--port",
        "--admin-port",
        "--help",
        "--slo-",
    }
    assert used - {"--slo"} <= flags
