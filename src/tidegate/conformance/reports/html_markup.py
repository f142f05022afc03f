"""HTML that cannot be forgotten to be escaped: text is escaped unless it is Markup, and only `tag` makes Markup.

What cannot be seen in a text that a server sent is spelled out (`visible_text.py`), in attributes as in content.
"""

from collections.abc import Iterable
from html import escape

from tidegate.conformance.reports.visible_text import split_unseen, visible

_VOID = {"meta", "input", "br", "hr"}


class Markup(str):
    """HTML as it stands."""

    __slots__ = ()


Part = str | Markup | None


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


def tag(name: str, /, *parts: Part, **attributes: str | bool | None) -> Markup:
    """Returns an element. Attributes: a trailing `_` of a name is dropped, other `_` are hyphens; True has no value,
    None and False are left out.
    """
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not None and value is not False:
            words.append(f'{key}="{escape(visible(value), quote=True)}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening) if name in _VOID else Markup(f"{opening}{joined(parts)}</{name}>")


def joined(parts: Iterable[Part]) -> Markup:
    """Returns the parts one after the other; those that are no Markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts if part is not None))
