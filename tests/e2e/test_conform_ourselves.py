"""Our own server before our own judge: the program as a stranger runs it, the whole suite or a bounded part of it."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.keys import add_key
from harness.server_process import PROGRAM, ServerProcess
from tidegate.conformance.catalog import CASES

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]


NOT_OF_THIS_MODEL = {"auth", "embeddings", "reasoning"}
"""Areas of which a server without keys and a model without vectors and thoughts pass nothing."""


def _judge(server: ServerProcess, report: Path, *flags: str) -> Any:
    """Returns the report as JSON; the summary is shown where the program did not end with 0."""
    command = [sys.executable, "-c", PROGRAM, "conform", "--base-url", f"http://127.0.0.1:{server.port}/v1"]
    command += ["--admin-url", f"http://127.0.0.1:{server.admin_port}", "--seed", "1", "--report", str(report), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=880, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return json.loads(report.read_text("utf-8"))


def _outcomes(document: Any) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in document["cases"]}


def test_the_scripted_engine_passes_the_whole_suite(tmp_path: Path) -> None:
    with ServerProcess("scripted") as server:
        outcomes = _outcomes(_judge(server, tmp_path / "report.json", "--drain"))
    assert len(outcomes) > 600
    assert list(outcomes.values()).count("pass") > 600
    assert outcomes["drain.order"] == "pass"


def test_a_pool_of_two_engines_passes_the_smoke_profile(tmp_path: Path) -> None:
    with ServerProcess("scripted", engine__replicas=2) as server:
        flags = ("--profile", "smoke", "--jobs", "4", "--drain")
        outcomes = _outcomes(_judge(server, tmp_path / "report.json", *flags))
    assert list(outcomes.values()).count("pass") > 250
    assert outcomes["drain.order"] == "pass"


def test_a_server_with_keys_passes_what_concerns_them(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir(0o700)
    key = add_key(state_dir, "judge")
    with ServerProcess("scripted", server__state_dir=state_dir) as server:
        outcomes = _outcomes(_judge(server, tmp_path / "report.json", "--only", "auth.*", "--api-key", key))
    assert set(outcomes.values()) == {"pass"}


@pytest.mark.model
def test_the_real_model_passes_the_smoke_profile(tmp_path: Path) -> None:
    with ServerProcess("llama") as server:
        outcomes = _outcomes(_judge(server, tmp_path / "report.json", "--profile", "smoke", "--jobs", "2", "--drain"))
    areas = Counter(case_id.partition(".")[0] for case_id, outcome in outcomes.items() if outcome == "pass")
    assert sum(areas.values()) > 250
    assert {case.area for case in CASES} - areas.keys() <= NOT_OF_THIS_MODEL
