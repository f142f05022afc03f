"""A page of one file: nothing is loaded from elsewhere, it reads without JavaScript, and is light or dark. Pure.

Its policy allows only the style and the script that it was made with, so that whatever a server sent cannot act.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

from tidegate.reporting.markup import Markup, Part, tag

_ASSETS = resources.files("tidegate.reporting") / "assets"
TOKENS = _ASSETS.joinpath("tokens.css").read_text("utf-8")
"""The names of colours, light and dark; drawings that stand alone carry them too."""
_STYLE = TOKENS + _ASSETS.joinpath("page.css").read_text("utf-8")
_SCRIPT = _ASSETS.joinpath("page.js").read_text("utf-8")


def render_page(title: str, *body: Part, style: str = "", script: str = "") -> str:
    """Returns the document. `style`, `script`: what it needs beside what every page has."""
    style, script = _STYLE + style, _SCRIPT + script
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_source(style)}",
            f"script-src {_source(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    content = tag("body", *body, Markup(f"<script>{script}</script>"))
    return f"<!doctype html>\n{tag('html', head, content, lang='en')}\n"


def _source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def header(kicker: str, heading: str, *parts: Part) -> Markup:
    """Returns the top of a page, with the button for light or dark."""
    button = tag("button", "Dark or light", type="button", id="theme")
    return tag("header", button, tag("p", kicker, class_="kicker"), tag("h1", heading), *parts)


def facts(pairs: Iterable[tuple[str, Part]]) -> Markup:
    """Returns names and values beside each other; those without a value are left out."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value), class_="facts")


def table(heads: Sequence[Part], rows: Iterable[Markup], *, class_: str | None = None) -> Markup:
    """Returns a table that scrolls where it is too wide. `heads`: texts, or cells; None: an empty cell."""
    cells = [
        tag("td") if head is None else head if isinstance(head, Markup) else tag("th", head, scope="col")
        for head in heads
    ]
    head = tag("thead", tag("tr", *cells)) if cells else None
    return tag("div", tag("table", head, tag("tbody", *rows), class_=class_), class_="scroll")
