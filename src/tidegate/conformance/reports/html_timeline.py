"""The events of one exchange over time, drawn as SVG: a mark for each, the first token, pauses, the end. Pure.

Places are percentages, so that the drawing is as wide as there is room and its text keeps its size. Marks that would
fall on one another are one mark, the taller the more events it stands for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.conformance.reports.document import EventDocument, Transcript
from tidegate.conformance.reports.endings import LABELS
from tidegate.conformance.reports.html_markup import Markup, tag
from tidegate.conformance.reports.visible_text import one_line
from tidegate.conformance.wire.json_text import at, read_json

_AXIS_Y = 74
_HEIGHT = 96
_SLOTS = 250
"""Marks that fit beside each other."""
MIN_PAUSE_S = 0.02
"""A shorter silence is no pause that anybody sees."""
_TOLD_CHARS = 160
_TOLD_EVENTS = 6


@dataclass(frozen=True, slots=True)
class Pause:
    """A silence, much longer than those between most events. Instants in seconds from the start of sending."""

    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Moments:
    """What a timeline shows, in seconds from the start of sending; None where it did not happen."""

    first_byte_s: float | None
    first_token: int | None
    pauses: tuple[Pause, ...]
    end_s: float


def find_moments(transcript: Transcript) -> Moments:
    """Returns first byte, event of the first token, pauses and end."""
    times = [event.at_s for event in transcript.events] or [read.at_s for read in transcript.reads]
    end_s = max([transcript.duration_s, *times, 1e-6])
    first = next((event.index for event in transcript.events if _has_token(event.data)), None)
    return Moments(transcript.reads[0].at_s if transcript.reads else None, first, _find_pauses([0.0, *times]), end_s)


def _has_token(data: str) -> bool:
    chunk = read_json(data.encode("utf-8", "surrogatepass"))
    choices = at(chunk, "choices")
    for choice in choices if isinstance(choices, list) else []:
        delta = at(choice, "delta")
        fields = [at(choice, "text"), *(at(delta, name) for name in ("content", "reasoning_content", "tool_calls"))]
        if any(field for field in fields):
            return True
    return False


def _find_pauses(times: Sequence[float]) -> tuple[Pause, ...]:
    """The gaps that are five times the middle one and take a twelfth of the whole."""
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    if not gaps:
        return ()
    least = max(MIN_PAUSE_S, 5 * gaps[len(gaps) // 2] if len(gaps) > 2 else 0.0, (times[-1] - times[0]) / 12)
    pairs = pairwise(times)
    return tuple(Pause(earlier, later) for earlier, later in pairs if later - earlier >= least)


def spell_time(seconds: float) -> str:
    """Returns a time as people say it: `0.4 ms`, `35 ms`, `1.25 s`."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def tell_moments(transcript: Transcript, moments: Moments) -> list[tuple[str, str]]:
    """Returns what the drawing shows in words: name and value."""
    found: list[tuple[str, str]] = []
    if moments.first_byte_s is not None:
        found.append(("first byte", spell_time(moments.first_byte_s)))
    if moments.first_token is not None:
        token = next(event for event in transcript.events if event.index == moments.first_token)
        found.append(("first token", spell_time(token.at_s)))
    if transcript.num_events:
        found.append(("events", str(transcript.num_events)))
    if moments.pauses:
        found.append(("longest pause", spell_time(max(pause.to_s - pause.from_s for pause in moments.pauses))))
    return [*found, ("end", f"{spell_time(moments.end_s)}: {transcript.ending_says}")]


def draw_timeline(transcript: Transcript, *, anchor: str, faults: frozenset[int]) -> Markup:
    """Returns the drawing. `anchor`: of the table of events, whose rows the marks lead to; `faults`: indices of events
    that faults name.
    """
    moments = find_moments(transcript)
    told = ", ".join(f"{name} {value}" for name, value in tell_moments(transcript, moments))
    parts = [_draw_pause(pause, moments.end_s) for pause in moments.pauses]
    parts += [tag("line", x1="0", x2="100%", y1=str(_AXIS_Y), y2=str(_AXIS_Y), class_="axis")]
    parts += draw_ticks(moments.end_s, _AXIS_Y)
    if transcript.events:
        parts += [_draw_events(group, moments, anchor, faults) for group in _group(transcript.events, moments.end_s)]
    else:
        for read in transcript.reads[:_SLOTS]:
            told_read = f"{read.num_bytes} bytes read at {spell_time(read.at_s)}"
            parts.append(_mark(read.at_s / moments.end_s, 16, "read", tag("title", told_read)))
    parts.append(_draw_end(transcript))
    return tag("svg", *parts, class_="timeline", height=str(_HEIGHT), role="img", aria_label=f"Timeline: {told}")


def percent(share: float) -> str:
    """Returns a place on the axis. One percent is left free on both sides, so that marks at the ends are whole."""
    return f"{1 + 98 * min(max(share, 0.0), 1.0):.2f}%"


def _group(events: Sequence[EventDocument], end_s: float) -> list[list[EventDocument]]:
    groups: dict[int, list[EventDocument]] = {}
    for event in events:
        groups.setdefault(round(event.at_s / end_s * _SLOTS), []).append(event)
    return list(groups.values())


def _mark(share: float, height: int, kind: str, *parts: Markup) -> Markup:
    return tag(
        "rect",
        *parts,
        x=percent(share),
        y=str(_AXIS_Y - height),
        width="3",
        height=str(height),
        transform="translate(-1.5 0)",
        class_=f"mark {kind}",
    )


def _draw_events(group: list[EventDocument], moments: Moments, anchor: str, faults: frozenset[int]) -> Markup:
    share = group[0].at_s / moments.end_s
    indices = {event.index for event in group}
    is_bad, is_first = bool(indices & faults), moments.first_token in indices
    height = min(14 + round(7 * math.log2(len(group))), 40)
    kind = "bad" if is_bad else "first" if is_first else "event"
    lines = [
        f"{event.index} at {spell_time(event.at_s)}: {one_line(event.data, _TOLD_CHARS)}"
        for event in group[:_TOLD_EVENTS]
    ]
    if len(group) > _TOLD_EVENTS:
        lines.append(f"and {len(group) - _TOLD_EVENTS} more")
    title = Markup("\n").join(tag("title", line)[7:-8] for line in lines)
    parts = [Markup(f"<title>{title}</title>"), _mark(share, height, kind)]
    label = "✕ here" if is_bad else "first token" if is_first else None
    if label is not None:
        parts.append(_label(share, _AXIS_Y - height - 5, label, "bad" if is_bad else "first"))
    target = next((index for index in sorted(indices) if index in faults), group[0].index)
    return tag("a", *parts, href=f"#{anchor}-e{target}", tabindex="-1")


def _label(share: float, y: int, words: str, kind: str) -> Markup:
    """Near the ends a label grows inwards."""
    side = "start" if share < 0.08 else "end" if share > 0.92 else "middle"
    return tag("text", words, x=percent(share), y=str(y), text_anchor=side, class_=f"label {kind}")


def _draw_pause(pause: Pause, end_s: float) -> Markup:
    start, width = pause.from_s / end_s, (pause.to_s - pause.from_s) / end_s
    told = f"nothing for {spell_time(pause.to_s - pause.from_s)}"
    parts = [
        tag(
            "rect",
            tag("title", told),
            x=percent(start),
            y="26",
            width=f"{98 * width:.2f}%",
            height=str(_AXIS_Y - 26),
            class_="pause",
        )
    ]
    if width > 0.15:
        parts.append(tag("text", told, x=percent(start + width / 2), y="44", text_anchor="middle", class_="label"))
    return tag("g", *parts)


def draw_ticks(end_s: float, axis_y: int) -> list[Markup]:
    """Returns marks below an axis, at two to seven round instants."""
    power = 10.0 ** math.floor(math.log10(end_s))
    step = next(power * share for share in (0.2, 0.5, 1.0, 2.0) if end_s / (power * share) <= 6)
    parts = []
    for number in range(int(end_s / step) + 1):
        share = number * step / end_s
        parts.append(
            tag("line", x1=percent(share), x2=percent(share), y1=str(axis_y), y2=str(axis_y + 5), class_="axis")
        )
        parts.append(_label(share, axis_y + 18, spell_time(number * step) if number else "0", "tick"))
    return parts


def _draw_end(transcript: Transcript) -> Markup:
    label = LABELS[transcript.ending]
    kind = "bad" if label.startswith("✕") else "end"
    line = tag("line", x1="99%", x2="99%", y1="18", y2=str(_AXIS_Y), class_=f"finish {kind}")
    return tag("g", tag("title", transcript.ending_says), line, _label(transcript.duration_s and 1.0, 13, label, kind))
