"""The shape of the code: sizes and names. import-linter looks after the direction of imports, `.importlinter`."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(path for folder in ("src", "tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.py"))
MAX_FILE_LINES = 400
MAX_BODY_LINES = 50
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
NAME_EXCEPTIONS = {"src/tidegate/core/kv/manager.py"}
"""It manages one thing, the blocks of sequences."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, without its docstring."""
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    statements = function.body[1:] if has_docstring else function.body
    if not statements:
        return 0
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 300


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_is_short_says_its_concept_and_has_short_functions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    assert path.stem not in FORBIDDEN_NAMES or name_of(path) in NAME_EXCEPTIONS
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    too_long = {function.name: body_lines(function) for function in functions if body_lines(function) > MAX_BODY_LINES}
    assert too_long == {}
    if path.is_relative_to(ROOT / "src") and text:
        assert ast.get_docstring(tree) is not None, "a module says what it is about"


def test_nothing_in_the_package_unpickles_or_evaluates() -> None:  # SEC-16 SEC-17
    for path in FILES:
        if not path.is_relative_to(ROOT / "src"):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not imported & {"pickle", "marshal", "shelve", "dill", "torch", "yaml"}, path
        keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
        assert "allow_pickle" not in keywords, path
        assert not called & {"eval", "exec"}, path


LOCKS = sorted((ROOT / "requirements").rglob("*.lock"))
PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)==(?P<version>[^ ;]+)(?: ; [^\\]+)? \\$")
WITHDRAWN = {"litellm"}
"""Packages that have been released with malice, and that nothing here needs."""


def locked(lock: Path) -> dict[str, int]:
    """Returns the packages of a lock file with the number of hashes of each; fails on any line that pins nothing."""
    packages: dict[str, int] = {}
    for line in lock.read_text("utf-8").splitlines():
        found = PIN.match(line)
        if found is not None:
            packages[found["name"]] = 0
        elif line.startswith("    --hash=sha256:"):
            packages[list(packages)[-1]] += 1
        else:
            assert not line.strip() or line.lstrip().startswith("#"), f"{lock.name}: {line}"
    return packages


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_hashes(lock: Path) -> None:  # SEC-30
    packages = locked(lock)
    assert packages
    assert [name for name, num_hashes in packages.items() if num_hashes == 0] == []
    assert not packages.keys() & WITHDRAWN


def test_every_dependency_is_locked_and_only_locks_are_installed() -> None:  # SEC-30
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[ <>=;\[]", line)[0].lower() for line in project["dependencies"]}
    extras = {re.split(r"[ <>=;\[]", line)[0].lower() for line in project["optional-dependencies"]["dev"]}
    assert needed <= locked(ROOT / "requirements/serve.lock").keys()
    assert needed | extras <= locked(ROOT / "requirements/dev.lock").keys()
    assert not list((ROOT / "requirements").glob("*.txt")), "what is installed is locked"
    installs = [
        line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if " install " in line and ".lock" in line
    ]
    assert len(installs) >= 2
    assert all("--require-hashes" in line and "--no-deps" in line for line in installs)
