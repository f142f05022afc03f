"""What the judge and the load share with the rest of ours is one package that knows neither them nor the server."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tidegate"
ALLOWED = {
    "conformance": {"tidegate", "tidegate.conformance", "tidegate.reporting"},
    "loadtest": {"tidegate.loadtest", "tidegate.reporting", "tidegate.clock"},
    "reporting": {"tidegate.reporting"},
}


def imported_from(folder: Path) -> dict[str, set[str]]:
    """Returns the packages of ours that a folder's files import, each with the files that do."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name.partition(".")[0] == "tidegate":
                    found.setdefault(".".join(name.split(".")[:2]), set()).add(path.name)
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_shares_code_with_no_other_than_these(package: str) -> None:
    found = imported_from(SOURCE / package)
    assert {name: files for name, files in found.items() if name not in ALLOWED[package]} == {}
    assert f"tidegate.{package}" in found
