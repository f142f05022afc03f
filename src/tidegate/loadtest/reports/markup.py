"""HTML and SVG that is escaped by construction: all text is, unless it is Markup, which only `tag` makes. Pure.

What a server sent may hold characters that no document may; they become replacement characters.
"""

import re
from collections.abc import Iterable
from html import escape

_VOID = {"meta", "br", "hr"}
_NOT_ALLOWED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


class Markup(str):
    """Markup as it stands."""

    __slots__ = ()


Part = str | Markup | None
Attribute = str | float | bool | None


def clean(text: str) -> str:
    """Returns the text without characters that a document may not hold, or that turn its direction round."""
    return _NOT_ALLOWED.sub("\N{REPLACEMENT CHARACTER}", text)


def joined(parts: Iterable[Part]) -> Markup:
    """Returns the parts one after the other; those that are no Markup are escaped."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else escape(clean(part), quote=False) for part in parts if part is not None
        )
    )


def tag(name: str, /, *parts: Part, **attributes: Attribute) -> Markup:
    """Returns an element. A trailing `_` of an attribute is dropped, other `_` are hyphens; None and False: left out.

    Numbers are written with one decimal.
    """
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
        if value is True:
            words.append(key)
        elif isinstance(value, float | int) and value is not False:
            words.append(f'{key}="{value:.1f}"'.replace('.0"', '"'))
        elif isinstance(value, str):
            words.append(f'{key}="{escape(clean(value), quote=True)}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening) if name in _VOID else Markup(f"{opening}{joined(parts)}</{name}>")
