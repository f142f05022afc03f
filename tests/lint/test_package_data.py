"""What is no code and belongs to the package is in the wheel: styles, scripts and profiles."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = [
    path
    for path in (ROOT / "src" / "tidegate").rglob("*")
    if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
]


def test_the_wheel_leaves_nothing_of_the_package_out() -> None:
    """The build takes every file of the package but those that git ignores."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert build == {"targets": {"wheel": {"packages": ["src/tidegate"]}}}
    names = {path.name for path in DATA}
    assert {"smoke.toml", "page.css", "tokens.css", "report.js", "plot.css"} <= names


def test_git_ignores_none_of_the_packages_data() -> None:
    paths = "\n".join(path.relative_to(ROOT).as_posix() for path in DATA)
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"], cwd=ROOT, input=paths, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        pytest.skip(f"no git repository: {done.stderr}")
    assert done.stdout == ""
