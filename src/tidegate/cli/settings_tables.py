"""The settings as Markdown tables, made from `settings.py`: the body of docs/settings.md.

A test holds the page equal to this; `python -m tidegate.cli.settings_tables docs/settings.md` brings it up to date.
"""

import sys
from pathlib import Path

import msgspec
from msgspec import inspect

from tidegate.cli.main import SERVE_FLAGS
from tidegate.cli.settings import SECTIONS, describe


def render_tables() -> str:
    """Returns one heading, sentence and table for each section."""
    flags = {name: flag for flag, (name, _) in SERVE_FLAGS.items()}
    return "\n".join(_render_section(section, kind, flags) for section, kind in SECTIONS.items())


def _render_section(section: str, kind: type[msgspec.Struct], flags: dict[str, str]) -> str:
    lines = [f"## [{section}]", "", kind.__doc__ or "", "", "| key | value | default | flag | meaning |"]
    lines.append("|---|---|---|---|---|")
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        flag = flags.get(f"{section}.{field.name}")
        cells = (
            f"`{field.name}`",
            describe_type(field.type),
            _show(field.default if field.default_factory is msgspec.NODEFAULT else None),
            f"`{flag}`" if flag is not None else "",
            describe(section, field.name),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def describe_type(kind: inspect.Type) -> str:
    """Returns a type and its range for people."""
    if isinstance(kind, inspect.Metadata):
        return describe_type(kind.type)
    if isinstance(kind, inspect.UnionType):
        return describe_type(next(member for member in kind.types if not isinstance(member, inspect.NoneType)))
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.DictType):
        return "table"
    if isinstance(kind, inspect.VarTupleType):
        return f"list of {describe_type(kind.item_type)}s"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return ("integer" if isinstance(kind, inspect.IntType) else "number") + _range(kind.ge, kind.le)
    return "true or false" if isinstance(kind, inspect.BoolType) else "text"


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f", {least:g} to {most:g}"
    return "" if least is None else f", at least {least:g}"


def _show(default: object) -> str:
    if default is None or default == ():
        return "none"
    return str(default).lower() if isinstance(default, bool) else f"{default}"


def update_page(page: Path) -> None:
    """Replaces the tables of a page; what stands before the first one stays."""
    introduction, _, _ = page.read_text("utf-8").partition("## [")
    page.write_text(introduction + render_tables(), "utf-8")


if __name__ == "__main__":
    update_page(Path(sys.argv[1]))
