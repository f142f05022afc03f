"""`tidegate diff`: arguments, exit status, reports."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.judged_case import RightServers, mutated
from harness.mutant import EditsValue
from tidegate.cli.conform_command import conform
from tidegate.cli.diff_command import diff

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def servers() -> Iterator[RightServers]:
    with RightServers() as running:
        yield running


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(diff, list(arguments))


@pytest.mark.process
def test_the_same_server_twice_is_no_regression(servers: RightServers) -> None:
    address = servers.of("scripted").target.base_url
    outcome = _run(address, address, "--only", "chat.object", "--only", "models.*")
    assert outcome.exit_code == 0, outcome.output
    assert "no difference in" in outcome.output


@pytest.mark.process
def test_a_regression_is_reported_everywhere(servers: RightServers, tmp_path: Path) -> None:
    right = servers.of("scripted")
    wrong = EditsValue("calls it otherwise", lambda value: {**value, "object": "text_completion"})
    reports = [tmp_path / f"diff{suffix}" for suffix in (".html", ".json", ".xml", ".md")]
    flags = [part for path in reports for part in ("--report", str(path))]
    with mutated(right, wrong) as broken:
        outcome = _run(right.target.base_url, broken.target.base_url, "--only", "chat.object", "--rounds", "1", *flags)
    assert outcome.exit_code == 1, outcome.output
    assert "asking" in outcome.output
    assert "again about 1 cases" in outcome.output
    assert "verdict in chat.object" in outcome.output
    assert all("chat.object" in path.read_text() for path in reports)
    assert json.loads(reports[1].read_text())["has_regressions"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((NOWHERE, NOWHERE), "no connection could be made"),
        (("ftp://x", NOWHERE), "is not an address"),
        ((NOWHERE, NOWHERE, "--only", "no.such"), "'no.such' matches no case"),
        ((NOWHERE, NOWHERE, "--report", "a.txt"), "must end in one of .html"),
        ((NOWHERE, NOWHERE, "--report", "no/such/folder/a.md"), "there is no folder"),
        ((NOWHERE, NOWHERE, "--changes", "no-such-file.toml"), "no-such-file.toml"),
    ],
    ids=["no server", "no address", "no case", "no format", "no folder", "no file"],
)
def test_what_cannot_be_compared_is_exit_status_2(arguments: tuple[str, ...], says: str) -> None:
    outcome = _run(*arguments)
    assert outcome.exit_code == 2
    assert says in outcome.output


def test_a_bad_file_of_changes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "changes.toml"
    path.write_text('[[change]]\nreason = "x"\n')
    outcome = _run(NOWHERE, NOWHERE, "--changes", str(path))
    assert outcome.exit_code == 2
    assert "names nothing" in outcome.output


@pytest.mark.process
def test_a_recording_stands_in_for_its_server(servers: RightServers, tmp_path: Path) -> None:
    right = servers.of("scripted")
    folder = str(tmp_path / "before")
    address = right.target.base_url
    recorded = CliRunner().invoke(conform, ["--base-url", address, "--only", "chat.*", "--record", folder])
    assert recorded.exit_code == 0, recorded.output
    same = _run(folder, address, "--only", "chat.*")
    assert same.exit_code == 0, same.output
    assert "prompt tokens" not in same.output
    assert _run(folder, folder, "--only", "chat.*").exit_code == 0
    with mutated(right, EditsValue("calls it otherwise", lambda value: {**value, "object": "x"})) as broken:
        other = _run(folder, broken.target.base_url, "--only", "chat.object")
    assert other.exit_code == 1, other.output


@pytest.mark.process
def test_only_the_cases_of_a_recording_are_asked(servers: RightServers, tmp_path: Path) -> None:
    address = servers.of("scripted").target.base_url
    folder, report = str(tmp_path / "before"), tmp_path / "diff.json"
    CliRunner().invoke(conform, ["--base-url", address, "--only", "models.*", "--record", folder])
    outcome = _run(folder, address, "--only", "models.*", "--only", "chat.object", "--report", str(report))
    assert outcome.exit_code == 0, outcome.output
    assert "does not hold 1 of" in outcome.output
    assert "not compared, the old side does not hold them: chat.object" in outcome.output
    document = json.loads(report.read_text())
    assert (document["not_in_old"], document["not_in_new"]) == (["chat.object"], [])
    nothing = _run(folder, address, "--only", "chat.object")
    assert nothing.exit_code == 2
    assert "none of the 1 chosen cases is held by both sides" in nothing.output


@pytest.mark.process
def test_answers_to_other_questions_are_not_compared(servers: RightServers, tmp_path: Path) -> None:
    address = servers.of("scripted").target.base_url
    folders = [str(tmp_path / seed) for seed in ("1", "22222")]
    for folder, seed in zip(folders, ("1", "22222"), strict=True):
        flags = [
            "--base-url",
            address,
            "--only",
            "isolation.*",
            "--only",
            "tokens.*",
            "--seed",
            seed,
            "--record",
            folder,
        ]
        CliRunner().invoke(conform, flags)
    outcome = _run(*folders, "--only", "isolation.*", "--only", "tokens.*")
    assert outcome.exit_code == 0, outcome.output


def test_a_folder_without_a_recording_is_told(tmp_path: Path) -> None:
    outcome = _run(str(tmp_path), NOWHERE)
    assert outcome.exit_code == 2
    assert "manifest" in outcome.output
