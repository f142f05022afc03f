"""`tidegate conform`: asks a server every case of the suite and says what came of it."""

import asyncio
import contextlib
import secrets
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tidegate import __version__
from tidegate.cli.conform_progress import ProgressView
from tidegate.cli.conform_show import list_cases, show_case
from tidegate.cli.terminal import terminal_width
from tidegate.conformance.case import Case
from tidegate.conformance.catalog import CASES
from tidegate.conformance.probing.probe import NoServerError
from tidegate.conformance.probing.probe_table import PROBES
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.recording.files import RecordingWriter, read_recording
from tidegate.conformance.recording.format import RecordingError
from tidegate.conformance.recording.replay import manifest_of, replay
from tidegate.conformance.reports.builder import build_document
from tidegate.conformance.reports.renderers import RENDERERS
from tidegate.conformance.reports.terminal import render_summary
from tidegate.conformance.running.conclusion import ExitStatus, conclude
from tidegate.conformance.running.run_plan import plan_run
from tidegate.conformance.running.run_profile import (
    BUILT_IN,
    BY_SERVER,
    ProfileError,
    RunProfile,
    choose_by_patterns,
    find_case,
    read_profile,
)
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.running.runner import RunBounds, Runner
from tidegate.conformance.running.shipped_profiles import SHIPPED, read_shipped
from tidegate.conformance.wire.target import REQUEST_TIMEOUT_S, Target, TargetError, read_base_url
from tidegate.reporting.report_file import ReportError, check_report_path, write_reports

INTERRUPTED = "it was interrupted"


class CannotRun(Exception):
    """Nothing can be asked as it was ordered; the message says why."""


@click.command()
@click.option("--base-url", metavar="URL", help="address of the API, like http://127.0.0.1:8000/v1")
@click.option("--api-key", metavar="KEY", envvar="TIDEGATE_API_KEY", help="sent as a bearer token [TIDEGATE_API_KEY]")
@click.option("--model", default="", metavar="NAME", help="default: the first that GET /v1/models names")
@click.option(
    "--profile",
    "profile_name",
    metavar="openai|tidegate|smoke|FILE",
    help="whose promises are checked; default: tidegate where the server shows its contract, else openai. smoke: a "
    "bounded part of them, for CI",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="only cases whose id matches, like 'stream.*'")
@click.option("--skip", multiple=True, metavar="PATTERN", help="leave out cases whose id matches")
@click.option("--admin-url", metavar="URL", help="Tidegate's admin listener, like http://127.0.0.1:9464")
@click.option("--admin-token-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="its token")
@click.option("--drain", "may_drain", is_flag=True, help="allow to drain the server at the end: it stops serving")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="of words in prompts; default: a new one")
@click.option("--jobs", default=4, show_default=True, type=click.IntRange(1, 64), help="cases that run at once")
@click.option(
    "--timeout", default=REQUEST_TIMEOUT_S, show_default=True, type=click.FloatRange(min=0.1), help="of a request, in s"
)
@click.option("--max-time", default=3600.0, show_default=True, type=click.FloatRange(min=1), help="of all, in s")
@click.option(
    "--record", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="keep every byte in a folder"
)
@click.option(
    "--replay", "replayed", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="judge a recording"
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="also write FILE.html, .json, .xml (JUnit) or .md; may be given again. Of cases that pass it shows the "
    "beginning and the end; --record keeps all bytes",
)
@click.option("--list", "lists", is_flag=True, help="list the cases; no server is asked")
@click.option("--show", "shown", metavar="CASE", help="show one case: what it asks, why, and how by hand")
@click.option("--verbose", is_flag=True, help="a line for each case, not only for failures")
def conform(**options: Any) -> None:
    """Judge any server that speaks the OpenAI API. Only --base-url is needed.

    \b
    Exit status: 0 all passed, 1 failures, 2 could not run. Cases that the server says honestly it does not serve
    (unsupported), and those whose answers told nothing (inconclusive), do not fail a run.

    \b
    Examples
      tidegate conform --base-url http://127.0.0.1:8000/v1
      tidegate conform --base-url http://127.0.0.1:8000/v1 --only 'stream.*' --report stream.html
      tidegate conform --base-url https://api.example.com/v1 --profile openai --record before
      tidegate conform --replay before --report before.md
      tidegate conform --show stream.finish_once
    """
    try:
        sys.exit(_run(_Orders(**options)))
    except (CannotRun, ProfileError, TargetError, NoServerError, RecordingError, ReportError) as error:
        print(f"tidegate conform: {error}", file=sys.stderr)
        sys.exit(ExitStatus.COULD_NOT_RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orders:
    """The command line."""

    base_url: str | None
    api_key: str | None
    model: str
    profile_name: str | None
    only: tuple[str, ...]
    skip: tuple[str, ...]
    admin_url: str | None
    admin_token_file: Path | None
    may_drain: bool
    seed: int | None
    jobs: int
    timeout: float
    max_time: float
    record: Path | None
    replayed: Path | None
    reports: tuple[Path, ...]
    lists: bool
    shown: str | None
    verbose: bool

    def choose_cases(self) -> list[Case]:
        """Returns the cases that --only and --skip leave. Raises ProfileError."""
        return choose_by_patterns(CASES, self.only, self.skip)


def _run(orders: _Orders) -> int:
    """Returns the exit status. Raises what `conform` tells."""
    if orders.shown is not None:
        print("\n".join(show_case(find_case(orders.shown, CASES))))
        return ExitStatus.ALL_PASSED
    cases = orders.choose_cases()
    profile = _read_profile(orders)
    if orders.lists:
        print("\n".join(list_cases(profile.choose(cases, has_contract=True))))
        return ExitStatus.ALL_PASSED
    for path in orders.reports:
        check_report_path(path, RENDERERS)
    if orders.replayed is not None:
        if orders.base_url is not None or orders.record is not None:
            raise CannotRun("--replay asks no server: leave out --base-url and --record")
        report = _replay(orders, orders.replayed, profile)
    elif orders.base_url is None:
        raise CannotRun("give the address of a server with --base-url, or a recording with --replay")
    else:
        report = asyncio.run(_ask(orders, orders.base_url, profile))
    return _tell(orders, profile, profile.with_known_failures(report))


def _read_profile(orders: _Orders) -> RunProfile:
    name = orders.profile_name
    if name is None:
        return BY_SERVER
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name in SHIPPED:
        return read_profile(name, read_shipped(name), CASES)
    try:
        return read_profile(name, Path(name).read_text("utf-8"), CASES)
    except UnicodeDecodeError:
        raise CannotRun(f"--profile {name}: is not UTF-8") from None
    except OSError as error:
        known = ", ".join([*BUILT_IN, *SHIPPED])
        raise CannotRun(f"--profile {name}: {error.strerror}; it can be {known}, or a TOML file") from None


def _choose(orders: _Orders, profile: RunProfile, probed: Probed) -> tuple[Case, ...]:
    cases = profile.choose(orders.choose_cases(), has_contract=probed.has_contract)
    if not cases:
        raise CannotRun("no case is left by --only, --skip and --profile; --list names all")
    return cases


def _replay(orders: _Orders, folder: Path, profile: RunProfile) -> RunReport:
    recording = read_recording(folder)
    recorded = set(recording.manifest.cases)
    cases = _choose(orders, profile, recording.manifest.probed)
    if not orders.only and orders.profile_name is None:
        cases = tuple(case for case in cases if case.id in recorded)
    return replay(recording, cases)


def _read_target(orders: _Orders, base_url: str) -> Target:
    token = None
    if orders.admin_token_file is not None:
        try:
            token = orders.admin_token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CannotRun(f"--admin-token-file {orders.admin_token_file}: {error}") from None
    return Target(
        base_url=read_base_url(base_url),
        api_key=orders.api_key or None,
        model=orders.model,
        admin_url=None if orders.admin_url is None else read_base_url(orders.admin_url).removesuffix("/v1"),
        admin_token=token,
        may_drain=orders.may_drain,
        seed=secrets.randbits(31) if orders.seed is None else orders.seed,
        timeout_s=orders.timeout,
    )


async def _ask(orders: _Orders, base_url: str, profile: RunProfile) -> RunReport:
    target = _read_target(orders, base_url)
    writer = None if orders.record is None else RecordingWriter(orders.record)
    asking = _Asking(writer, profile)
    runner = Runner(target, jobs=orders.jobs, bounds=RunBounds(max_s=orders.max_time), tell=asking.take)
    asking.runner = runner
    with contextlib.suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, asking.interrupt)
    num_probes = sum(len(probe.asks) for probe in PROBES)
    _say(f"asking {target.base_url} what it can do: about {num_probes} small requests")
    probed = await runner.probe()
    cases = _choose(orders, profile, probed)
    _say(f"model {probed.model}, seed {target.seed}: {plan_run(cases).describe()}")
    with ProgressView(len(cases), tells_all=orders.verbose) as asking.view:
        report = await runner.run(cases, probed)
    if asking.failure is not None:
        raise asking.failure
    if writer is not None:
        writer.write_manifest(manifest_of(report, suite=__version__, profile=profile.name))
        _say(f"recorded in {orders.record}")
    return report


class _Asking:
    """What is done with each result as it comes, and with the first Ctrl-C; a second one ends the program."""

    def __init__(self, writer: RecordingWriter | None, profile: RunProfile) -> None:
        self.runner: Runner | None = None
        self.view: ProgressView | None = None
        self.failure: RecordingError | None = None
        self._writer = writer
        self._profile = profile

    def take(self, result: Result) -> None:
        """Shows the result, and writes it down."""
        if self.view is not None:
            self.view.tell(self._profile.excuse(result))
        try:
            if self._writer is not None and self.failure is None:
                self._writer.write_case(result)
        except RecordingError as error:
            self.failure = error
            self._stop("the recording cannot be written")

    def interrupt(self) -> None:
        """Ends the run and lets it report."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        _say("interrupted: reporting what was done")
        self._stop(INTERRUPTED)

    def _stop(self, why: str) -> None:
        if self.runner is not None:
            self.runner.stop(why)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _tell(orders: _Orders, profile: RunProfile, report: RunReport) -> int:
    document = build_document(report)
    print(render_summary(document, width=terminal_width()), end="")
    for case_id in profile.cured(report):
        print(f"{case_id} passes, and the profile expects it to fail: take it out of `expected`")
    conclusion = conclude(report)
    for line in conclusion.says:
        print(line)
    write_reports(document, orders.reports, RENDERERS)
    return conclusion.status
