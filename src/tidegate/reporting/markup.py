"""HTML and SVG that are escaped by construction: text is escaped unless it is Markup, and only `tag` makes Markup.

What cannot be seen in a text that a server sent is spelled out (`visible_text.py`), in attributes as in content. Pure.
"""

from collections.abc import Iterable
from html import escape

from tidegate.reporting.visible_text import split_unseen, visible

_VOID = {"meta", "input", "br", "hr"}
_PLAIN = {"title", "option", "text"}
"""Elements that hold text and no elements of HTML: there an escape is not marked as one."""
_OF_SVG = {"viewBox", "preserveAspectRatio"}


class Markup(str):
    """HTML as it stands."""

    __slots__ = ()


Part = str | Markup | None
Attribute = str | float | bool | None


def text(content: str) -> Markup:
    """Returns text for content: escaped, and each unseen character marked as such."""
    pieces = []
    for is_unseen, part in split_unseen(content):
        pieces.append(f"<i>{part}</i>" if is_unseen else escape(part, quote=False))
    return Markup("".join(pieces))


def prose(content: str) -> Markup:
    """Returns a text of ours, with what stands between backticks as code."""
    parts = content.split("`")
    if len(parts) % 2 == 0:
        return text(content)
    return Markup("".join(f"<code>{text(part)}</code>" if odd % 2 else text(part) for odd, part in enumerate(parts)))


def tag(name: str, /, *parts: Part, **attributes: Attribute) -> Markup:
    """Returns an element. Attributes: a trailing `_` of a name is dropped, other `_` are hyphens; True has no value,
    None and False are left out, numbers have at most one decimal.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key if key in _OF_SVG else key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{_spell(value)}"')
    opening = f"<{' '.join(words)}>"
    if name in _VOID:
        return Markup(opening)
    if name in _PLAIN:
        parts = tuple(part if isinstance(part, Markup | None) else _plain(part) for part in parts)
    return Markup(f"{opening}{joined(parts)}</{name}>")


def _spell(value: str | float) -> str:
    return escape(visible(value), quote=True) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def _plain(content: str) -> Markup:
    return Markup(escape(visible(content, keeps="\n"), quote=False))


def joined(parts: Iterable[Part]) -> Markup:
    """Returns the parts one after the other; those that are no Markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts if part is not None))
