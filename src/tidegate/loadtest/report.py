"""The report of a measurement: what was ordered, what was measured, how two servers compare. The types are what its
JSON holds; `docs/bench.report.schema.json` is made from them. Pure.

All times are in seconds. A number that could not be measured is null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from tidegate.loadtest.comparison import Ratio, compare
from tidegate.loadtest.distribution import Spread, curve, spread_of
from tidegate.loadtest.metric import METRICS, TIMES, read_metric
from tidegate.loadtest.orders import Bounds, Load, Orders
from tidegate.loadtest.requirement import Judged, Requirement, judge
from tidegate.loadtest.run_summary import Run, Taken, summarise
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.slo import Slo
from tidegate.loadtest.target import Target

VERSION = 1
BUSY_CLIENT = 0.7
LATE_S = 0.05


class WorkloadReport(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths are tokens, as ordered. `tokens_per_word`: None where the server told no counts, and words were taken."""

    kind: str
    api: str
    seed: int
    input: str
    output: str
    prefix_tokens: int
    num_prefixes: int
    num_turns: int
    long_input: str
    long_every: int
    tokens_per_word: float | None


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The cumulative distribution of a time over all runs: pairs of seconds, and share of values up to it."""

    measure: str
    group: str
    points: list[tuple[float, float]]


class ServerReport(msgspec.Struct, frozen=True, kw_only=True):
    """`spreads`: each number over the runs that were not ended early, by its name (`ttft_p50`, `short.itl_p99`)."""

    label: str
    base_url: str
    model: str
    runs: list[Run]
    spreads: dict[str, Spread]
    curves: list[Curve]


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where the client ran. `load_average`: runnable processes over the last minute before it began."""

    system: str
    python: str
    num_cpus: int | None
    load_average: float | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`servers`: one, or two that took turns; `ratios` are the first over the second. `exit_status` as `tidegate
    bench` ends with: 0, 1 (a requirement is not met, or too many errors), 2 (nothing could be measured).
    """

    version: int
    tidegate: str
    started_at: str
    machine: Machine
    workload: WorkloadReport
    load: Load
    bounds: Bounds
    slo: Slo
    servers: list[ServerReport]
    ratios: list[Ratio]
    requirements: list[Judged]
    allowed_errors: float
    stopped: str
    warnings: list[str]
    exit_status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a report is built from."""

    orders: Orders
    targets: Sequence[Target]
    taken: Sequence[Sequence[Taken]]
    slo: Slo
    requirements: Sequence[Requirement]
    allowed_errors: float
    stopped: str
    warm_faults: dict[str, str]
    machine: Machine
    begun_at: float
    started_wall: float
    version: str


def build_report(findings: Findings) -> Report:
    """Returns the report."""
    servers = [_server(target, taken, findings) for target, taken in zip(findings.targets, findings.taken, strict=True)]
    first = compared_runs(servers[0].runs)
    second = compared_runs(servers[1].runs) if len(servers) > 1 else None
    judged = [judge(requirement, first, second) for requirement in findings.requirements]
    started = datetime.fromtimestamp(findings.started_wall, UTC)
    return Report(
        version=VERSION,
        tidegate=findings.version,
        started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        machine=findings.machine,
        workload=_workload(findings.orders, findings.targets[0].api),
        load=findings.orders.load,
        bounds=findings.orders.bounds,
        slo=findings.slo,
        servers=servers,
        ratios=compare(first, second) if second is not None else [],
        requirements=judged,
        allowed_errors=findings.allowed_errors,
        stopped=findings.stopped,
        warnings=_warnings(servers, findings),
        exit_status=_exit_status(servers, judged, findings),
    )


def compared_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """Returns the runs that were not ended early, as those are not like the others; all, if there is none."""
    return [run for run in runs if run.is_whole] or runs


def _workload(orders: Orders, api: str) -> WorkloadReport:
    workload = orders.workload
    return WorkloadReport(
        kind=workload.kind.value,
        api=api,
        seed=workload.seed,
        input=str(workload.input),
        output=str(workload.output),
        prefix_tokens=workload.prefix_tokens,
        num_prefixes=workload.num_prefixes,
        num_turns=workload.num_turns,
        long_input=str(workload.long_input),
        long_every=workload.long_every,
        tokens_per_word=workload.words.per_word if workload.words.is_measured else None,
    )


def _server(target: Target, taken: Sequence[Taken], findings: Findings) -> ServerReport:
    runs = [summarise(one, findings.begun_at, findings.slo) for one in taken]
    groups = sorted({group.name for run in runs for group in run.groups})
    names = [f"{group}.{metric}" if group else metric for group in ("", *groups) for metric in METRICS]
    spreads: dict[str, Spread] = {}
    for name in names:
        found = [read_metric(run, name) for run in compared_runs(runs)]
        spread = spread_of([value for value in found if value is not None])
        if spread is not None:
            spreads[name] = spread
    done = [sample for one in taken for sample in one.samples if sample.is_done]
    curves = [_curve(name, group, done) for group in (groups or ["all"]) for name in TIMES]
    return ServerReport(
        label=target.label,
        base_url=target.base_url,
        model=target.model,
        runs=runs,
        spreads=spreads,
        curves=[each for each in curves if each.points],
    )


def _curve(measure: str, group: str, done: Sequence[Sample]) -> Curve:
    chosen = [sample for sample in done if group in ("all", sample.group)]
    if measure == "itl":
        values: list[float | None] = [gap for sample in chosen for gap in sample.gaps_s]
    else:
        values = [getattr(sample, f"{measure}_s") for sample in chosen]
    return Curve(measure=measure, group=group, points=curve([value for value in values if value is not None]))


def _warnings(servers: Sequence[ServerReport], findings: Findings) -> list[str]:
    says: list[str] = []
    for server in servers:
        runs = server.runs
        if any(run.counted_by != "usage" for run in runs if run.total.num_done):
            says.append(
                f"{server.label}: tokens are counted by pieces of text where no usage came: a lower bound, as a piece "
                "may hold several tokens"
            )
        busiest = max((run.client_cpu for run in runs), default=0.0)
        if busiest > BUSY_CLIENT:
            says.append(f"{server.label}: this client used {busiest:.0%} of a processor: it may be the limit")
        late = max((run.late_s.p99 for run in runs if run.late_s is not None), default=0.0)
        if late > LATE_S:
            says.append(f"{server.label}: requests left up to {late * 1000:.0f} ms late (p99): the client was held up")
        if any(run.total.num_empty for run in runs):
            num_empty = sum(run.total.num_empty for run in runs)
            says.append(f"{server.label}: {num_empty} answers were empty; they have no first token")
    if findings.warm_faults:
        told = "; ".join(f"{kind}: {detail}" if detail else kind for kind, detail in findings.warm_faults.items())
        says.append(f"requests of the warm-up failed: {told}")
    return says


def _exit_status(servers: Sequence[ServerReport], judged: Sequence[Judged], findings: Findings) -> int:
    if not all(any(run.total.num_done for run in server.runs) for server in servers):
        return 2
    num_errors = [sum(run.total.num_errors for run in server.runs) for server in servers]
    num_ended = [sum(run.total.num_requests - run.total.num_unfinished for run in server.runs) for server in servers]
    has_too_many = any(e > findings.allowed_errors * n for e, n in zip(num_errors, num_ended, strict=True))
    return int(has_too_many or any(not one.is_met for one in judged))
