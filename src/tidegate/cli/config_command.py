"""`tidegate config`: the effective settings and where each came from."""

import sys

import msgspec
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tidegate.cli.settings import SECTIONS, describe
from tidegate.cli.settings_sources import Resolved

_PIPED_WIDTH = 10_000
"""Keeps each setting on one line, whole, where no terminal says how wide it is."""


def print_config(resolved: Resolved, *, show_all: bool) -> None:
    """Prints a table. Without `show_all`, defaults are summed up in one line."""
    columns = [Column(title, overflow="fold") for title in ("setting", "value", "from", "meaning")]
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    num_defaults = 0
    for section, kind in SECTIONS.items():
        values = getattr(resolved.settings, section)
        for field in msgspec.structs.fields(kind):
            name = f"{section}.{field.name}"
            origin = resolved.origins.get(name)
            if origin is None and not show_all:
                num_defaults += 1
                continue
            words = (name, _show(getattr(values, field.name)), origin or "default", describe(section, field.name))
            table.add_row(*map(Text, words))
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    if table.row_count:
        console.print(table)
    if num_defaults:
        console.print(f"{num_defaults} settings have their defaults; `tidegate config --all` lists them.")


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value) or "(none)"
    return "(none)" if value is None or value == {} else str(value)
