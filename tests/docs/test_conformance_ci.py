"""The CI action and the snippets of docs/conformance_ci.md: they parse, name flags that there are, and run."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tidegate.cli.conform_command import conform
from tidegate.cli.diff_command import diff

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / ".github/actions/conform/action.yml").read_text("utf-8"))
PAGE = (ROOT / "docs" / "conformance_ci.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS: Mapping[str, click.Command] = {"conform": conform, "diff": diff}


def flags_of(command: click.Command) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


def flags_used() -> set[tuple[str, str]]:
    """Returns command and flag of every call in the page and in the action."""
    used: set[tuple[str, str]] = set()
    for line in PAGE.splitlines():
        for name, rest in re.findall(r"tidegate (conform|diff)\b([^`]*)", line):
            used |= {(name, flag) for flag in re.findall(r"(?<=\s)--[a-z-]+", rest)}
    script = ACTION["runs"]["steps"][1]["run"]
    return used | {("conform", flag) for flag in re.findall(r"(?<=[\s(])--[a-z-]+", script)}


def test_flags_that_are_named_exist() -> None:
    used = flags_used()
    assert len(used) >= 7
    assert sorted(pair for pair in used if pair[1] not in flags_of(COMMANDS[pair[0]])) == []


def test_the_key_of_the_environment_is_that_of_the_commands() -> None:
    for command in COMMANDS.values():
        key = next(parameter for parameter in command.params if "--api-key" in parameter.opts)
        assert key.envvar == "TIDEGATE_API_KEY"


@pytest.mark.parametrize(("name", "text"), SNIPPETS, ids=[name for name, _ in SNIPPETS])
def test_snippets_are_yaml_with_jobs(name: str, text: str) -> None:
    value = yaml.safe_load(text)
    jobs = value["jobs"].values() if "jobs" in value else value.values()
    assert all("steps" in job or "script" in job for job in jobs)


def test_the_snippet_and_the_page_name_inputs_and_outputs_of_the_action() -> None:
    workflow = yaml.safe_load(dict(SNIPPETS)[".github/workflows/conformance.yml"])
    steps: list[dict[str, Any]] = workflow["jobs"]["conformance"]["steps"]
    step = next(step for step in steps if "actions/conform" in step.get("uses", ""))
    assert set(step["with"]) <= set(ACTION["inputs"])
    told = re.search(r"^Inputs: (.*?)\. Outputs:\s(.*?)\.$", PAGE, re.MULTILINE | re.DOTALL)
    assert told is not None
    assert re.findall(r"`([a-z-]+)`", told[1]) == list(ACTION["inputs"])
    assert re.findall(r"`([a-z-]+)`", told[2]) == list(ACTION["outputs"])


def judge(tmp_path: Path, status: int, **inputs: str) -> tuple[subprocess.CompletedProcess[str], list[str], str]:
    """Runs the action's step with a judge that only tells its arguments. Returns it, them, and the job's summary."""
    folder = tmp_path / "tidegate-conform" / "bin"
    folder.mkdir(parents=True)
    program = folder / "tidegate"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "key=${TIDEGATE_API_KEY-none}" "$@" > told\n'
        f'echo "# told" > report/conformance.md\nexit {status}\n',
        "utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    step = ACTION["runs"]["steps"][1]
    defaults = {name: ACTION["inputs"][of].get("default", "") for name, of in inputs_of(step).items()}
    variables = defaults | {"FOLDER": "report", "BASE_URL": "http://it/v1"} | inputs
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = subprocess.run(
        ["bash", "-c", step["run"]],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path)} | files | variables,
        capture_output=True,
        text=True,
    )
    return (
        done,
        (tmp_path / "told").read_text("utf-8").splitlines(),
        (tmp_path / "GITHUB_STEP_SUMMARY").read_text("utf-8"),
    )


def inputs_of(step: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.removeprefix("${{ inputs.").removesuffix(" }}") for name, value in step["env"].items()}


REPORTS = [word for kind in ("html", "json", "xml", "md") for word in ("--report", f"report/conformance.{kind}")]


def test_the_action_asks_with_what_is_given_and_nothing_else(tmp_path: Path) -> None:
    done, told, summary = judge(tmp_path, 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert told == ["key=none", "conform", "--base-url", "http://it/v1", *REPORTS]
    assert summary == "# told\n"
    assert (tmp_path / "GITHUB_OUTPUT").read_text("utf-8") == "status=0\n"


def test_patterns_are_not_file_names_and_inputs_are_no_shell(tmp_path: Path) -> None:
    hostile = '$(touch owned); "x"'
    (tmp_path / "stream.txt").touch()
    _, told, _ = judge(tmp_path, 0, ONLY="stream.* tools.*", SKIP="a.b", MODEL=hostile, TIDEGATE_API_KEY="k")
    assert told == [
        "key=k",
        "conform",
        "--base-url",
        "http://it/v1",
        "--model",
        hostile,
        *("--only", "stream.*", "--only", "tools.*", "--skip", "a.b"),
        *REPORTS,
    ]
    assert not (tmp_path / "owned").exists()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


ENDINGS = {(0, "true"): 0, (1, "true"): 1, (1, "false"): 0, (2, "true"): 2, (2, "false"): 2}


@pytest.mark.parametrize(("status", "fails"), ENDINGS)
def test_the_step_fails_as_it_is_told(status: int, fails: str, tmp_path: Path) -> None:
    done, _, summary = judge(tmp_path, status, FAILS=fails)
    assert done.returncode == ENDINGS[status, fails]
    assert summary == "# told\n"
    assert (tmp_path / "GITHUB_OUTPUT").read_text("utf-8") == f"status={status}\n"


def test_the_judge_needs_no_more_packages_than_its_lock_has() -> None:
    script = (
        "import sys, tidegate.cli.main, tidegate.cli.conform_command, tidegate.cli.diff_command\n"
        "import tidegate.conformance.reports.renderers, tidegate.conformance.reports.catalog_pages\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    needed = set((ROOT / "requirements/conform.in").read_text("utf-8").split())
    locked = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/conform.lock").read_text("utf-8"), re.MULTILINE)
    imported = {name.replace("_", "-") for name in done.stdout.split() if name[0] != "_"}
    assert imported - {"tidegate", "typing-extensions"} == needed
    assert needed <= set(locked)
