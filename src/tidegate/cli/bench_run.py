"""Runs one job of `tidegate bench`: says what it costs, measures, reports."""

import asyncio
import os
import platform
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate import __version__
from tidegate.cli.bench_progress import BenchProgress
from tidegate.cli.terminal import terminal_width
from tidegate.loadtest.measure import Measured, Measuring
from tidegate.loadtest.orders import Orders, cost_of
from tidegate.loadtest.preflight import CannotMeasureError
from tidegate.loadtest.report import Findings, Machine, Report, build_report
from tidegate.loadtest.reports.renderers import RENDERERS, write_plots
from tidegate.loadtest.reports.terminal import render_terminal
from tidegate.loadtest.reports.words import conclude
from tidegate.loadtest.requirement import Requirement
from tidegate.loadtest.slo import Slo
from tidegate.loadtest.target import Target
from tidegate.reporting.report_file import ReportError, write_reports
from tidegate.system import SystemClock

INTERRUPTED = "it was interrupted"
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the command line ordered."""

    targets: Sequence[Target]
    orders: Orders
    slo: Slo
    requirements: Sequence[Requirement]
    allowed_errors: float
    reports: Sequence[Path]
    plots: Path | None


def run_bench(job: Job) -> int:
    """Measures and reports; returns the exit status."""
    bounds = job.orders.bounds
    cost = cost_of(job.orders, len(job.targets))
    _say(cost.describe(bounds, len(job.targets)))
    if cost.num_tokens > bounds.max_tokens:
        _say(
            f"tidegate bench: that is more than --max-tokens {bounds.max_tokens:,}: allow more, or ask for fewer "
            "--requests, --runs or tokens"
        )
        return 2
    clock = SystemClock()
    started_wall, machine = clock.wall(), _machine()
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            measured = runner.run(_measure(job))
    except CannotMeasureError as error:
        _say(f"tidegate bench: {error}")
        return 2
    except KeyboardInterrupt:
        _say("tidegate bench: interrupted before anything was measured")
        return EXIT_INTERRUPTED
    report = build_report(
        Findings(
            orders=measured.orders,
            targets=measured.targets,
            taken=measured.taken,
            slo=job.slo,
            requirements=job.requirements,
            allowed_errors=job.allowed_errors,
            stopped=measured.stopped,
            warm_faults=measured.warm_faults,
            machine=machine,
            begun_at=measured.begun_at,
            started_wall=started_wall,
            version=__version__,
        )
    )
    return _tell(job, report)


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


async def _measure(job: Job) -> Measured:
    measuring = Measuring(job.targets, job.orders, SystemClock())
    try:
        await measuring.prepare()
        await _measure_all(job, measuring)
    finally:
        await measuring.close()
    return measuring.measured


async def _measure_all(job: Job, measuring: Measuring) -> None:
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        _say("interrupted: reporting what was measured")
        measuring.stop(INTERRUPTED)

    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, measuring.stop, "it was told to end")
    with BenchProgress(num_runs=job.orders.bounds.num_runs) as progress:
        await measuring.measure(progress.begin_run, progress.take)


def _machine() -> Machine:
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        num_cpus=os.cpu_count(),
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def _tell(job: Job, report: Report) -> int:
    print(render_terminal(report, width=terminal_width()), end="")
    print(conclude(report))
    try:
        write_reports(report, job.reports, RENDERERS)
        if job.plots is not None:
            write_plots(report, job.plots)
    except ReportError as error:
        _say(f"tidegate bench: {error}")
        return 2
    return EXIT_INTERRUPTED if report.stopped == INTERRUPTED else report.exit_status


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
