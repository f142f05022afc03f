"""Which kinds of report there are of a comparison, by the end of a file's name. Pure."""

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.report_html import render_html
from tidegate.conformance.diff.report_json import render_json
from tidegate.conformance.diff.report_junit import render_junit
from tidegate.conformance.diff.report_markdown import render_markdown
from tidegate.reporting.report_file import Renderers

RENDERERS: Renderers[Comparison] = {
    ".html": render_html,
    ".json": render_json,
    ".xml": render_junit,
    ".md": render_markdown,
}
