"""Reports as files: the name's end says which kind it is, checked before a run; each is written whole or not at all.

A shell. Does not know what is reported.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

Document = TypeVar("Document")
Renderers = Mapping[str, Callable[[Document], str]]
"""By the end of a name, with its dot."""


class ReportError(Exception):
    """A report cannot be written there; the message says why and what would do."""


def check_report_path(path: Path, renderers: Iterable[str]) -> None:
    """Raises ReportError where a report could not be written to `path` after the run."""
    if path.suffix.lower() not in renderers:
        known = ", ".join(renderers)
        raise ReportError(f"{path}: no report of this kind; the name must end in one of {known}")
    if path.is_dir():
        raise ReportError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise ReportError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ReportError(f"{path}: the folder {path.parent} cannot be written to")


def write_reports(document: Document, paths: Iterable[Path], renderers: Renderers[Document]) -> None:
    """Writes the document to each of the paths. Raises ReportError."""
    for path in paths:
        check_report_path(path, renderers)
        write_file(path, renderers[path.suffix.lower()](document))


def write_file(path: Path, text: str) -> None:
    """Writes a file whole or not at all, over an older one. Raises ReportError."""
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
