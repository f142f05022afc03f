"""Texts in Markdown that stay what they are, whatever is in them: words and code on a line, commands in a fence."""

import re
from collections.abc import Sequence

from tidegate.reporting.visible_text import one_line, visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]>|#~&])")


def quote(text: str) -> str:
    """Returns the text so that Markdown shows it as it stands, in a table too."""
    return _SPECIAL.sub(r"\\\1", " ".join(visible(text, keeps="\n\t").split())).replace("<", "&lt;")


def code(content: str, max_chars: int = 400, *, in_table: bool = False) -> str:
    """Returns a text as inline code, whatever backticks it holds; bounded, on one line."""
    line = one_line(content, max_chars)
    ticks = _ticks(line, 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    inline = f"{ticks}{pad}{line}{pad}{ticks}"
    return inline.replace("|", "\\|") if in_table else inline


def fence(commands: Sequence[str]) -> list[str]:
    """Returns the lines of a block of shell commands."""
    content = "\n".join(visible(command, keeps="\n\t") for command in commands)
    ticks = _ticks(content, 3)
    return [f"{ticks}sh", content, ticks]


def _ticks(content: str, least: int) -> str:
    """More of them than stand anywhere in the content."""
    longest = max((len(run) for run in re.findall("`+", content)), default=0)
    return "`" * max(least, longest + 1)
