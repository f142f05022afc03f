"""`tidegate diff`: what changed between two servers, or between a recording and a server, as their callers see it."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from tidegate.cli.diff_subjects import LiveSubject, RecordedSubject
from tidegate.cli.terminal import terminal_width
from tidegate.conformance.catalog import CASES
from tidegate.conformance.diff.comparison import DEFAULT_TOLERANCE
from tidegate.conformance.diff.confirm import NothingToCompareError, Subject, Terms, compare_subjects
from tidegate.conformance.diff.declared import Change, ChangesError, read_changes
from tidegate.conformance.diff.renderers import RENDERERS
from tidegate.conformance.diff.report_lines import write_lines
from tidegate.conformance.probing.probe import NoServerError
from tidegate.conformance.recording.files import read_recording
from tidegate.conformance.recording.format import RecordingError
from tidegate.conformance.running.run_profile import ProfileError, choose_by_patterns
from tidegate.conformance.wire.target import Target, TargetError, read_base_url
from tidegate.reporting.report_file import ReportError, check_report_path, write_reports
from tidegate.reporting.terminal_text import fold

_REFUSALS = (
    TargetError,
    ProfileError,
    NoServerError,
    NothingToCompareError,
    RecordingError,
    ChangesError,
    ReportError,
)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--api-key", metavar="KEY", envvar="TIDEGATE_API_KEY", help="for both [TIDEGATE_API_KEY]")
@click.option("--old-api-key", metavar="KEY", help="for OLD only")
@click.option("--new-api-key", metavar="KEY", help="for NEW only")
@click.option("--model", default="", metavar="NAME", help="for both; default: the first that each names")
@click.option("--old-model", default="", metavar="NAME", help="for OLD only")
@click.option("--new-model", default="", metavar="NAME", help="for NEW only")
@click.option("--only", multiple=True, metavar="PATTERN", help="compare only cases whose id matches, like 'stream.*'")
@click.option("--skip", multiple=True, metavar="PATTERN", help="leave out cases whose id matches")
@click.option(
    "--changes",
    "changes_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML with the changes that were meant: [[change]] case, aspect, where, old, new, contract, reason",
)
@click.option(
    "--tolerance",
    default=DEFAULT_TOLERANCE,
    show_default=True,
    type=click.FloatRange(min=0),
    help="of log-probabilities, in nats",
)
@click.option(
    "--rounds",
    default=2,
    show_default=True,
    type=click.IntRange(min=0),
    help="how often what regressed is asked again before it counts",
)
@click.option("--seed", type=int, help="of words in prompts, the same for both; default: that of the recording, or 0")
@click.option("--jobs", default=4, show_default=True, type=click.IntRange(min=1), help="cases that run at once")
@click.option("--timeout", default=60.0, show_default=True, type=click.FloatRange(min=1), help="of a request, seconds")
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="also write FILE.html, .json, .xml (JUnit) or .md; may be given again",
)
@click.option("--show-variation", is_flag=True, help="list allowed variations one by one")
def diff(old: str, new: str, **options: Any) -> None:
    """Say what changed for callers between OLD and NEW, each a server's address or a recording's folder.

    Both are asked every case of the suite, or those that a recording holds, and their answers are compared: verdicts,
    statuses, errors, headers, members, the order of a stream's chunks, usage, finish reasons, text, tool calls and
    log-probabilities. A difference is a regression, a change that --changes declares, an allowed variation, a
    compatible addition, or an improvement.

    \b
    Exit status: 0 no regressions, 1 regressions, 2 could not compare.

    \b
    Examples
      tidegate diff http://127.0.0.1:8000/v1 http://127.0.0.1:8001/v1
      tidegate conform --base-url http://127.0.0.1:8000/v1 --record before     on Thursday
      tidegate diff before http://127.0.0.1:8000/v1 --report diff.html         on Friday, after the upgrade
    """
    sys.exit(run_diff(old, new, options))


def run_diff(old: str, new: str, options: dict[str, Any]) -> int:
    """Compares and reports; returns the exit status."""
    try:
        for path in options["reports"]:
            check_report_path(path, RENDERERS)
        changes = _read_changes(options["changes_file"])
        cases = choose_by_patterns(CASES, options["only"], options["skip"])
        subjects = _subjects(old, new, options)
        terms = Terms(changes=changes, tolerance=options["tolerance"], rounds=options["rounds"])
        comparison = asyncio.run(compare_subjects(subjects[0], subjects[1], cases, terms, _tell))
        write_reports(comparison, options["reports"], RENDERERS)
    except _REFUSALS as error:
        print(f"tidegate diff: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"tidegate diff: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tidegate diff: interrupted; nothing was compared", file=sys.stderr)
        return 2
    for line in fold(write_lines(comparison, shows_variation=options["show_variation"]), terminal_width()):
        print(line)
    return int(comparison.has_regressions)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _read_changes(path: Path | None) -> list[Change]:
    if path is None:
        return []
    try:
        return read_changes(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ChangesError(f"{path}: is not UTF-8") from None
    except ChangesError as error:
        raise ChangesError(f"{path}: {error}") from None


def _subjects(old: str, new: str, options: dict[str, Any]) -> list[Subject]:
    """A live server is asked with the seed of the recording that it is compared with, so that prompts are the same."""
    recordings = [read_recording(Path(name)) if Path(name).is_dir() else None for name in (old, new)]
    seeds = [recording.manifest.seed for recording in recordings if recording is not None]
    seed = options["seed"] if options["seed"] is not None else next(iter(seeds), 0)
    subjects: list[Subject] = []
    for name, recording, side in zip((old, new), recordings, ("old", "new"), strict=True):
        if recording is not None:
            subjects.append(RecordedSubject(name, recording))
            continue
        target = Target(
            base_url=read_base_url(name),
            api_key=options[f"{side}_api_key"] or options["api_key"],
            model=options[f"{side}_model"] or options["model"],
            seed=seed,
            timeout_s=options["timeout"],
        )
        subjects.append(LiveSubject(target, options["jobs"]))
    return subjects
