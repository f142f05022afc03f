"""Writes a report to files, in the form that a file's name says. A shell."""

from collections.abc import Callable
from pathlib import Path

from tidegate.loadtest.report import Report
from tidegate.loadtest.reports.html import render_html
from tidegate.loadtest.reports.json_report import render_json
from tidegate.loadtest.reports.markdown import render_markdown
from tidegate.loadtest.reports.plots import draw_plots

RENDERERS: dict[str, Callable[[Report], str]] = {".html": render_html, ".json": render_json, ".md": render_markdown}


class ReportError(Exception):
    """A file cannot be written; the message says which and why."""


def check_report_path(path: Path) -> None:
    """Raises ValueError where the name says no form, or there is no folder."""
    if path.suffix.lower() not in RENDERERS:
        raise ValueError(f"{path}: the file's name must end in {', '.join(RENDERERS)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.absolute().parent}")


def write_report(report: Report, path: Path) -> None:
    """Writes one file. Raises ReportError."""
    _write(path, RENDERERS[path.suffix.lower()](report))


def write_plots(report: Report, folder: Path) -> None:
    """Writes each plot as an SVG file of its own. Raises ReportError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{folder} cannot be made: {error.strerror}") from None
    for plot in draw_plots(report):
        _write(folder / f"{plot.name}.svg", plot.standalone())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror}") from None
