"""Which kinds of report there are of a measurement, by the end of a file's name; plots as files of their own."""

from pathlib import Path

from tidegate.loadtest.report import Report
from tidegate.loadtest.reports.html import render_html
from tidegate.loadtest.reports.markdown import render_markdown
from tidegate.loadtest.reports.plots import draw_plots
from tidegate.reporting.json_document import render_json
from tidegate.reporting.report_file import Renderers, ReportError, write_file

RENDERERS: Renderers[Report] = {".html": render_html, ".json": render_json, ".md": render_markdown}


def write_plots(report: Report, folder: Path) -> None:
    """Writes each plot as an SVG file of its own. Raises ReportError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{folder} cannot be made: {error.strerror}") from None
    for plot in draw_plots(report):
        write_file(folder / f"{plot.name}.svg", plot.standalone())
