"""Writes reports of a run to files; the name's end says which kind. Names are checked before a run."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from tidegate.conformance.reports.builder import build_document
from tidegate.conformance.reports.document import ReportDocument
from tidegate.conformance.reports.html import render_html
from tidegate.conformance.reports.json_report import render_json
from tidegate.conformance.reports.junit import render_junit
from tidegate.conformance.reports.markdown import render_markdown
from tidegate.conformance.running.run_report import RunReport

RENDERERS: Mapping[str, Callable[[ReportDocument], str]] = {
    ".html": render_html,
    ".json": render_json,
    ".xml": render_junit,
    ".md": render_markdown,
}


class ReportError(Exception):
    """A report cannot be written there; the message says why and what would do."""


def check_report_path(path: Path) -> None:
    """Raises ReportError where a report could not be written to `path` after the run."""
    if path.suffix.lower() not in RENDERERS:
        known = ", ".join(RENDERERS)
        raise ReportError(f"{path}: no report of this kind; the name must end in one of {known} (.xml is JUnit)")
    if path.is_dir():
        raise ReportError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise ReportError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ReportError(f"{path}: the folder {path.parent} cannot be written to")


def write_report(report: RunReport, path: Path) -> None:
    """Writes one report. Raises ReportError."""
    write_reports(report, (path,))


def write_reports(report: RunReport, paths: Iterable[Path]) -> None:
    """Writes all of them, each whole or not at all. Raises ReportError."""
    document = build_document(report)
    for path in paths:
        check_report_path(path)
        _write(path, RENDERERS[path.suffix.lower()](document))


def _write(path: Path, text: str) -> None:
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False, newline="\n") as file:
            draft = Path(file.name)
            try:
                file.write(text)
                file.flush()
                draft.chmod(0o644)
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}") from error
