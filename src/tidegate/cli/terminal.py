"""What commands know of the terminal: how wide it is, and the bar that they show on it while they work."""

import shutil
import sys
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def terminal_width() -> int | None:
    """Returns the columns of the terminal that standard output goes to (COLUMNS goes before); None: it goes elsewhere,
    where lines stay whole.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def open_console(stream: TextIO | None) -> Console:
    """Returns the console of a command's progress; None: standard error."""
    return Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)


def make_bar(console: Console) -> Progress | None:
    """Returns a bar that goes when it ends, narrow enough for words beside it; None where nobody would see it move."""
    if not console.is_terminal:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
