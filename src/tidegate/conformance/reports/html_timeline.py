"""The events of one exchange over time, drawn as SVG: a mark for each, the first token, pauses, the end. Pure.

Marks that would fall on one another are one mark, the taller the more events it stands for.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.conformance.reports.document import Transcript
from tidegate.conformance.reports.endings import LABELS
from tidegate.conformance.reports.svg_axis import band, draw_axis, label, percent, unit
from tidegate.conformance.wire.json_text import at, read_json
from tidegate.reporting.markup import Markup, tag
from tidegate.reporting.numbers import spell_time

_AXIS_Y = 74
_HEIGHT = 96
_SLOTS = 250
"""Marks that fit beside each other."""
_READ_HEIGHT = 16
MIN_PAUSE_S = 0.02
"""A shorter silence is no pause that anybody sees."""


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


def draw_timeline(transcript: Transcript, faults: frozenset[int]) -> Markup:
    """Returns the drawing. `faults`: indices of events that faults name."""
    moments = find_moments(transcript)
    told = ", ".join(f"{name} {value}" for name, value in tell_moments(transcript, moments))
    bad = [event.at_s for event in transcript.events if event.index in faults]
    first = [event.at_s for event in transcript.events if event.index == moments.first_token]
    times = [event.at_s for event in transcript.events if event.index not in faults]
    kinds = [("mark", times, 14), ("mark first", first, 14), ("mark bad", bad, 14)]
    if not transcript.events:
        kinds = [("mark read", [read.at_s for read in transcript.reads], _READ_HEIGHT)]
    marks = [(kind, _draw_marks(at_s, moments.end_s, height)) for kind, at_s, height in kinds]
    labels = [label(at_s / moments.end_s, _AXIS_Y - 30, "first token", "label first") for at_s in first]
    labels += [label(at_s / moments.end_s, _AXIS_Y - 19, "✕ here", "label bad") for at_s in bad[:1]]
    return tag(
        "svg",
        *(_draw_pause(pause, moments.end_s) for pause in moments.pauses),
        band(_AXIS_Y, marks),
        *labels,
        draw_axis(moments.end_s, _AXIS_Y),
        _draw_end(transcript),
        class_="timeline",
        height=_HEIGHT,
        role="img",
        aria_label=f"Timeline: {told}",
        data_end=f"{moments.end_s:.6g}",
    )


def _draw_marks(times: Iterable[float], end_s: float, height: int) -> str:
    counts: dict[int, int] = {}
    for at_s in times:
        slot = round(at_s / end_s * _SLOTS)
        counts[slot] = counts.get(slot, 0) + 1
    return "".join(
        f"M{unit(slot / _SLOTS)} {_AXIS_Y}v-{min(height + round(7 * math.log2(count)), 40)}"
        for slot, count in counts.items()
    )


def _draw_pause(pause: Pause, end_s: float) -> Markup:
    start, width = pause.from_s / end_s, (pause.to_s - pause.from_s) / end_s
    place, top = percent(start), 26
    area = tag("rect", x=place, y=top, width=f"{98 * width:.4g}%", height=_AXIS_Y - top, class_="pause")
    told = f"nothing for {spell_time(pause.to_s - pause.from_s)}"
    words = tag("text", told, x=percent(start + width / 2), y=44, text_anchor="middle") if width > 0.15 else None
    return tag("g", tag("title", told), area, words)


def _draw_end(transcript: Transcript) -> Markup:
    says = LABELS[transcript.ending]
    kind = "bad" if says.startswith("✕") else "end"
    line = tag("line", x1="99%", x2="99%", y1=18, y2=_AXIS_Y, class_=f"finish {kind}")
    return tag("g", tag("title", transcript.ending_says), line, label(1.0, 13, says, f"label {kind}"))
