"""A time axis as SVG that is as wide as there is room: places are percentages, so that text keeps its size. Pure.

What is drawn many times (a mark for each event, a bar for each exchange) is one path in a band of THOUSAND units that
is stretched with the page, its strokes not: some ten bytes for each, and no element.
"""

from collections.abc import Iterable

from tidegate.reporting.markup import Markup, joined, tag
from tidegate.reporting.numbers import spell_tick_time
from tidegate.reporting.scale import Scale

_THOUSAND = 1000


def percent(share: float) -> str:
    """Returns a place on the axis. One percent is left free on both sides, so that marks at the ends are whole."""
    return f"{1 + 98 * _within(share):.4g}%"


def unit(share: float) -> str:
    """Returns the same place in a band."""
    return f"{10 + 980 * _within(share):.4g}"


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def band(height: int, paths: Iterable[tuple[str, str]], *, y: int | None = None) -> Markup:
    """Returns a band with its paths, each a class and what is drawn; empty ones are left out."""
    drawn = [tag("path", d=drawing, class_=kind) for kind, drawing in paths if drawing]
    size = f"0 0 {_THOUSAND} {height}"
    return tag("svg", *drawn, viewBox=size, preserveAspectRatio="none", y=y, height=height)


def label(share: float, y: int, words: str, kind: str) -> Markup:
    """Returns a text at a place; near the ends it grows inwards."""
    side = None if share < 0.08 else "end" if share > 0.92 else "middle"
    return tag("text", words, x=percent(share), y=y, text_anchor=side, class_=kind)


def draw_axis(end_s: float, y: int) -> Markup:
    """Returns the line and marks below it at round instants."""
    ticks = Scale(0.0, end_s, 0.0, 1.0).ticks(4)
    line = f"M0 .5H{_THOUSAND}" + "".join(f"M{unit(tick / end_s)} 0v5" for tick in ticks)
    return joined(
        (
            band(6, [("axis", line)], y=y),
            *(label(tick / end_s, y + 18, spell_tick_time(tick), "tick") for tick in ticks),
        )
    )
