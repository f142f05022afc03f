"""Judges a recording again, without the server. The verdicts are those of the run, by the cases of today. Pure."""

from collections.abc import Sequence

from tidegate.conformance.case import Case
from tidegate.conformance.judge import judge_need
from tidegate.conformance.recording.format import Manifest, Recording
from tidegate.conformance.running.run_report import Result, RunReport, result_of
from tidegate.conformance.wire.target import Target


def replay(recording: Recording, cases: Sequence[Case]) -> RunReport:
    """Returns the report. Cases that were not recorded are left out, and named in `not_run`."""
    manifest = recording.manifest
    results: list[Result] = []
    not_run: list[str] = []
    for case in cases:
        runs = recording.runs.get(case.id)
        if case.id not in manifest.cases:
            not_run.append(case.id)
        elif (verdict := judge_need(case, manifest.probed)) is not None:
            results.append(Result(case, verdict, (), 0.0))
        elif not runs:
            not_run.append(case.id)
        else:
            results.append(result_of(case, runs, recording.durations_s.get(case.id, 0.0)))
    return RunReport(
        target_of(manifest),
        manifest.probed,
        tuple(results),
        manifest.duration_s,
        manifest.started_at,
        manifest.stopped,
        tuple(not_run),
    )


def target_of(manifest: Manifest) -> Target:
    """Returns the server that was asked, without credentials."""
    return Target(
        base_url=manifest.base_url,
        admin_url=manifest.admin_url,
        model=manifest.probed.model,
        seed=manifest.seed,
    )


def manifest_of(report: RunReport, *, suite: str, profile: str) -> Manifest:
    """Returns the manifest of a run that is recorded."""
    return Manifest(
        suite=suite,
        started_at=report.started_at,
        duration_s=report.duration_s,
        base_url=report.target.base_url,
        admin_url=report.target.admin_url,
        seed=report.target.seed,
        profile=profile,
        probed=report.probed,
        cases=tuple(result.case.id for result in report.results),
        stopped=report.stopped,
    )
