"""Engine options as the command line and the environment give them: text to values."""

from typing import Any

import click
import msgspec


def read_engine_options(
    _context: click.Context, _flag: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any] | None:
    """Returns the options of repeated `NAME=VALUE` flags; None without any. Raises BadParameter."""
    options: dict[str, Any] = {}
    for one in given:
        name, has_value, value = one.partition("=")
        if not has_value or not name.isidentifier():
            raise click.BadParameter(f"{one!r} is not NAME=VALUE")
        options[name] = read_value(value)
    return options or None


def read_value(text: str) -> object:
    """Returns the JSON value that a text is, or the text itself."""
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.MsgspecError:
        return text
