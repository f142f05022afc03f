"""Reports as files: by the end of the name, whole or not at all."""

import re
from pathlib import Path

import pytest

from tidegate.reporting.report_file import ReportError, check_report_path, write_reports

RENDERERS = {".html": "<p>{}".format, ".md": "# {}".format}


@pytest.mark.parametrize("suffix", RENDERERS)
def test_the_end_of_a_name_says_which_report_is_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"report{suffix.upper()}"
    path.write_text("an older one", "utf-8")
    write_reports("it", [path], RENDERERS)
    assert path.read_text("utf-8") == RENDERERS[suffix]("it")
    assert list(tmp_path.iterdir()) == [path]


REFUSED = {
    "report.txt": "no report of this kind; the name must end in one of .html, .md",
    "report": "no report of this kind",
    "absent/report.html": "there is no folder",
    "folder.html": "is a folder",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_report_that_cannot_be_written_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ReportError, match=re.escape(REFUSED[name])):
        check_report_path(tmp_path / name, RENDERERS)
    with pytest.raises(ReportError, match=re.escape(REFUSED[name])):
        write_reports("it", [tmp_path / name], RENDERERS)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_a_disk_that_fails_is_told_and_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ReportError, match="No space left on device"):
        write_reports("it", [tmp_path / "report.md"], RENDERERS)
    assert list(tmp_path.iterdir()) == []
