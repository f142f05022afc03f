"""The commands of the pages about the judge work pasted, in order; here each asks one case, of a scripted server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.judged_case import RightServers

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(?P<kind>sh|toml)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = """#!/bin/sh
exec {python} -c 'from tidegate.cli.main import main; main()' "$@" --only chat.object
"""
LEFT = {
    "of the profile in the page": 'base = "openai"',
    "of the judge's own packages": "pip install",
    "that measure for half an hour": "bench/diff_runs.py",
}
"""Blocks that are no commands for a server, by what they hold."""
REPORTS = {
    "conformance.md": {"before.html"},
    "conformance_reports.md": {"run.html", "one.html"},
    "conformance_ci.md": {"conformance.html", "conformance.md", "before.html", "upgrade.html", "upgrade.md"},
    "diff.md": {"diff.html"},
}
"""What the commands of a page leave behind."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with RightServers() as servers:
        yield servers.of("scripted").target.base_url


def script_of(page: str) -> str:
    """Returns the blocks of a page, each on its own: one that ends the shell ends no other."""
    lines = ["set -e"]
    for block in BLOCK.finditer((DOCS / page).read_text("utf-8")):
        text = block["text"]
        if any(mark in text for mark in LEFT.values()):
            continue
        lines += [f"(\n{text})"] if block["kind"] == "sh" else ["cat > changes.toml <<'END'", f"{text}END"]
    return "\n".join(lines)


@pytest.mark.process
@pytest.mark.parametrize("page", REPORTS)
def test_the_commands_of_a_page_work_pasted(page: str, address: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tidegate"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    script = re.sub(r"http://127\.0\.0\.1:800[01]/v1", address, script_of(page))
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "BASE_URL": address}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert REPORTS[page] <= {path.name for path in tmp_path.iterdir()}
