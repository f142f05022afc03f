"""The files under deploy/, and the same with a test's addresses in place of theirs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tidegate.cli.settings import Settings
from tidegate.cli.settings_sources import resolve

DEPLOY = Path(__file__).parents[2] / "deploy"


def deployed(name: str) -> str:
    """The text of a file, by its path below deploy/."""
    return (DEPLOY / name).read_text("utf-8")


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """`text` with other addresses and files. Each of them must stand in it once."""
    for said, here in changes.items():
        assert text.count(said) == 1, f"{said!r} stands {text.count(said)} times"
        text = text.replace(said, here)
    return text


def documents(name: str) -> list[dict[str, Any]]:
    """The YAML documents of a file."""
    return [one for one in yaml.safe_load_all(deployed(name)) if one is not None]


def settings_in(name: str, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings that a server with this file would have: unknown ones and values out of range raise."""
    return resolve(DEPLOY / name, environment or {}, {}, is_file_required=True).settings
