"""The plots of a report, as SVG: distributions of times, the course of runs, and how two servers compare. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from tidegate.loadtest.metric import SHOWN_OF, TIMES, metric_of
from tidegate.loadtest.report import Report, ServerReport
from tidegate.loadtest.reports.rows import groups_of, spell_ratio
from tidegate.reporting.markup import Markup, joined, tag
from tidegate.reporting.numbers import digits, spell_tick, spell_tick_time, spell_time
from tidegate.reporting.page import TOKENS
from tidegate.reporting.scale import Scale, scale_from_zero, scale_of_times

STYLE = (resources.files("tidegate.loadtest.reports") / "assets" / "plot.css").read_text("utf-8")
WIDTH = 480
HEIGHT = 280
LEFT, RIGHT, TOP, BOTTOM = 62.0, 446.0, 34.0, 240.0
MARKED = (0.5, 0.9, 0.99)
COMPARED = (
    "requests_per_s",
    "output_tokens_per_s",
    "goodput_per_s",
    *(f"{time}_{point}" for time, points in SHOWN_OF.items() for point in points if point in ("p50", "p99", "max")),
)
ROW_HEIGHT = 26
_EDGES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Round ratios, the widest of which that fits is marked on both sides of 1."""
Spell = Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """`drawing`: what stands inside the SVG element; `says`: what a person who cannot see it is told."""

    name: str
    title: str
    says: str
    drawing: Markup
    height: int = HEIGHT

    def inline(self) -> Markup:
        """Returns the SVG element for a page that has the style."""
        size = f"0 0 {WIDTH} {self.height}"
        return tag(
            "svg", self.drawing, class_="plot", viewBox=size, role="img", aria_label=f"{self.title}. {self.says}"
        )

    def standalone(self) -> str:
        """Returns an SVG document that carries its style and its title."""
        title = tag("text", self.title, x=12, y=20, class_="title")
        back = tag("rect", width=WIDTH, height=self.height + 24, class_="paper")
        body = tag("g", self.drawing, transform="translate(0 24)")
        height = self.height + 24
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH * 2}" height="{height * 2}"><style>{TOKENS}{STYLE}</style>{back}{title}{body}</svg>\n'
        )


def draw_plots(report: Report) -> list[Plot]:
    """Returns all plots for which there is something to draw."""
    groups = groups_of(report) or ["all"]
    plots = [draw_ratios(report)] if report.ratios else []
    plots += [draw_distribution(report, measure, group) for group in groups for measure in TIMES]
    plots += [draw_course(report, "pieces_per_s"), draw_course(report, "in_flight")]
    return [plot for plot in plots if plot.drawing]


def draw_distribution(report: Report, measure: str, group: str) -> Plot:
    """Returns the share of values (upwards) that are at most so long (to the right)."""
    curves = [
        (number, server, curve.points)
        for number, server in enumerate(report.servers)
        for curve in server.curves
        if (curve.measure, curve.group) == (measure, group)
    ]
    of_group = "" if group == "all" else f" of {group} requests"
    name, title = f"{measure}_{group}" if of_group else measure, f"{TIMES[measure].capitalize()}{of_group}"
    if not curves:
        return Plot(name=name, title=title, says="", drawing=Markup(""))
    across = scale_of_times([at for _, _, points in curves for at, _ in points], LEFT, RIGHT)
    up = Scale(0.0, 1.0, BOTTOM, TOP)
    parts = [_frame(across, up, spell_tick_time, _percent)]
    told = []
    for number, server, points in curves:
        line = [(across.place(at), up.place(share)) for at, share in points]
        parts.append(_line(line, f"series-{number}"))
        marks = {share: at for share in MARKED for at, near in points if near <= share + 1e-9}
        for share, at in marks.items():
            words = f"{server.label}: p{share * 100:g} {spell_time(at)}"
            dot = tag(
                "circle", tag("title", words), cx=across.place(at), cy=up.place(share), r=4, class_=f"series-{number}"
            )
            parts.append(dot)
            told.append(words)
    parts.append(_legend(report.servers))
    return Plot(name=name, title=title, says="; ".join(told), drawing=joined(parts))


def draw_course(report: Report, member: str) -> Plot:
    """Returns the course of every run: pieces of text each second, or requests that are running."""
    title = "Pieces of text a second, each run" if member == "pieces_per_s" else "Requests that are running, each run"
    runs = [(number, run) for number, server in enumerate(report.servers) for run in server.runs if run.total.num_done]
    if not runs:
        return Plot(name=member, title=title, says="", drawing=Markup(""))
    across = scale_from_zero([run.duration_s for _, run in runs], LEFT, RIGHT)
    up = scale_from_zero([getattr(moment, member) for _, run in runs for moment in run.timeline], BOTTOM, TOP)
    parts = [_frame(across, up, spell_tick_time, spell_tick)]
    for number, run in runs:
        line = [(across.place(moment.at_s), up.place(getattr(moment, member))) for moment in run.timeline]
        parts.append(_line(line, f"series-{number} thin"))
    parts.append(_legend(report.servers))
    return Plot(name=member, title=title, says=f"{len(runs)} runs", drawing=joined(parts))


def draw_ratios(report: Report) -> Plot:
    """Returns the ratio of each number, first over second, with its spread over the pairs of runs."""
    groups = groups_of(report)
    names = [f"{group}.{name}" if group else name for group in (groups or [""]) for name in COMPARED]
    ratios = [ratio for name in names for ratio in report.ratios if ratio.metric == name]
    title = f"{report.servers[0].label} over {report.servers[1].label}"
    if not ratios:
        return Plot(name="ratios", title=title, says="", drawing=Markup(""))
    most = max([max(ratio.high, 1 / max(ratio.low, 1e-6)) for ratio in ratios] + [1.25])
    most = min(most * 1.1, 100.0)
    across = Scale(1 / most, most, 190.0, 380.0, is_log=True)
    bottom = TOP + ROW_HEIGHT * len(ratios)
    parts = [tag("line", x1=across.place(1), x2=across.place(1), y1=TOP - 6, y2=bottom, class_="axis")]
    parts += [_tick_below(across.place(tick), bottom, f"{digits(tick)} x") for tick in _ratio_ticks(most)]
    parts.append(tag("text", "▲ better  ▼ worse  · unclear", x=190, y=16, class_="label"))
    for row, ratio in enumerate(ratios):
        y = TOP + ROW_HEIGHT * (row + 0.5)
        group = ratio.metric.rpartition(".")[0]
        label = f"{group} {metric_of(ratio.metric).label}".strip()
        low, high = across.place(ratio.low), across.place(ratio.high)
        parts.append(tag("text", label, x=182, y=y + 4, class_="label end"))
        parts.append(tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"span {ratio.verdict}"))
        parts.append(tag("circle", cx=across.place(ratio.median), cy=y, r=5, class_=f"dot {ratio.verdict}"))
        parts.append(tag("text", spell_ratio(ratio).split(" (")[0], x=390, y=y + 4, class_="label strong"))
    told = "; ".join(f"{ratio.metric} {spell_ratio(ratio)}" for ratio in ratios)
    return Plot(name="ratios", title=title, says=told, drawing=joined(parts), height=int(bottom + 34))


def _ratio_ticks(most: float) -> tuple[float, ...]:
    widest = max(edge for edge in _EDGES if edge <= most)
    return (1 / widest, 1.0, widest)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _frame(across: Scale, up: Scale, spell_across: Spell, spell_up: Spell) -> Markup:
    parts = []
    for tick in up.ticks(4):
        y = up.place(tick)
        parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="axis" if tick == 0 else "grid"))
        parts.append(tag("text", spell_up(tick), x=LEFT - 7, y=y + 4, class_="label end"))
    parts += [_tick_below(across.place(tick), BOTTOM, spell_across(tick)) for tick in across.ticks(4)]
    return joined(parts)


def _tick_below(x: float, y: float, text: str) -> Markup:
    mark = tag("line", x1=x, x2=x, y1=y, y2=y + 5, class_="axis")
    return joined((mark, tag("text", text, x=x, y=y + 19, class_="label middle")))


def _line(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)


def _legend(servers: Sequence[ServerReport]) -> Markup:
    if len(servers) < 2:
        return Markup("")
    parts = []
    for number, server in enumerate(servers):
        x = LEFT + number * 110
        parts.append(tag("line", x1=x, x2=x + 18, y1=14, y2=14, class_=f"series-{number}"))
        parts.append(tag("text", server.label, x=x + 24, y=18, class_="label"))
    return joined(parts)
