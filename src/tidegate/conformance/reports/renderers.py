"""Which kinds of report there are of a run, by the end of a file's name. Pure."""

from tidegate.conformance.reports.document import ReportDocument
from tidegate.conformance.reports.html import render_html
from tidegate.conformance.reports.junit import render_junit
from tidegate.conformance.reports.markdown import render_markdown
from tidegate.reporting.json_document import render_json
from tidegate.reporting.report_file import Renderers

RENDERERS: Renderers[ReportDocument] = {
    ".html": render_html,
    ".json": render_json,
    ".xml": render_junit,
    ".md": render_markdown,
}
