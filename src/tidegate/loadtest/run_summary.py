"""From the samples of one run to its numbers. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.loadtest.distribution import Distribution, describe
from tidegate.loadtest.sample import Ending, Sample
from tidegate.loadtest.slo import Slo

TIMELINE_POINTS = 60
MAX_DETAILS = 20


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that are counted together; `name` is `all` for those of a whole run. Times are in seconds.

    `num_empty`: done without any text. `itl_s`: gaps between pieces of text, of all requests together.
    `tpot_s`: each request's mean time for a token behind its first. `cached_tokens`: None where the server tells none.
    """

    name: str
    num_requests: int
    num_done: int
    num_empty: int
    num_errors: int
    num_unfinished: int
    num_good: int | None
    errors: dict[str, int]
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int
    num_pieces: int
    requests_per_s: float
    output_tokens_per_s: float
    goodput_per_s: float | None
    ttft_s: Distribution | None
    itl_s: Distribution | None
    tpot_s: Distribution | None
    e2e_s: Distribution | None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of a run: pieces of text that came each second, and requests that were running at its end."""

    at_s: float
    pieces_per_s: float
    in_flight: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """`total` counts all requests; `groups` those of each group, where there are several.

    `counted_by`: `usage` (the server's own counts), `pieces` (chunks with text, a lower bound) or `both`.
    `client_cpu`: processor seconds of this client for each second of the run. `late_s`: how much later than planned
    requests left, in an open loop. `is_whole`: it was not ended early.
    """

    number: int
    is_whole: bool
    begun_s: float
    duration_s: float
    total: Group
    groups: list[Group]
    counted_by: str
    client_cpu: float
    late_s: Distribution | None
    details: dict[str, str]
    timeline: list[Moment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a run left. Instants are of the samples' clock. `is_whole`: it was not ended early."""

    number: int
    begun_at: float
    ended_at: float
    samples: Sequence[Sample]
    client_cpu_s: float = 0.0
    is_open_loop: bool = False
    is_whole: bool = True


def summarise(taken: Taken, origin: float, slo: Slo) -> Run:
    """Returns the numbers of a run. `origin`: the instant from which the runs of a report are dated."""
    duration = max(taken.ended_at - taken.begun_at, 1e-9)
    names = sorted({sample.group for sample in taken.samples})
    groups = [_group(name, [s for s in taken.samples if s.group == name], duration, slo) for name in names]
    late = [s.sent_at - s.due_at for s in taken.samples if s.ending != Ending.NOT_SENT.value]
    details: dict[str, str] = {}
    for sample in taken.samples:
        if sample.is_error and len(details) < MAX_DETAILS:
            details.setdefault(sample.ending, sample.detail)
    return Run(
        number=taken.number,
        is_whole=taken.is_whole,
        begun_s=taken.begun_at - origin,
        duration_s=duration,
        total=_group("all", taken.samples, duration, slo),
        groups=groups if len(groups) > 1 else [],
        counted_by=_counted_by(taken.samples),
        client_cpu=taken.client_cpu_s / duration,
        late_s=describe(late) if taken.is_open_loop else None,
        details=details,
        timeline=_timeline(taken, duration),
    )


def _group(name: str, samples: Sequence[Sample], duration_s: float, slo: Slo) -> Group:
    done = [sample for sample in samples if sample.is_done]
    errors = Counter(sample.ending for sample in samples if sample.is_error)
    num_good = sum(slo.is_met(sample) for sample in done) if slo.is_set else None
    prompts = [sample.num_prompt_tokens for sample in done if sample.num_prompt_tokens is not None]
    cached = [sample.num_cached_tokens for sample in done if sample.num_cached_tokens is not None]
    output = sum(sample.num_tokens for sample in done)
    return Group(
        name=name,
        num_requests=len(samples),
        num_done=len(done),
        num_empty=sum(not sample.token_at for sample in done),
        num_errors=errors.total(),
        num_unfinished=sum(sample.ending == Ending.UNFINISHED.value for sample in samples),
        num_good=num_good,
        errors=dict(sorted(errors.items())),
        prompt_tokens=sum(prompts) if prompts else None,
        cached_tokens=sum(cached) if cached else None,
        output_tokens=output,
        num_pieces=sum(len(sample.token_at) for sample in done),
        requests_per_s=len(done) / duration_s,
        output_tokens_per_s=output / duration_s,
        goodput_per_s=None if num_good is None else num_good / duration_s,
        ttft_s=describe([sample.ttft_s for sample in done if sample.ttft_s is not None]),
        itl_s=describe([gap for sample in done for gap in sample.gaps_s]),
        tpot_s=describe([sample.tpot_s for sample in done if sample.tpot_s is not None]),
        e2e_s=describe([sample.e2e_s for sample in done]),
    )


def _counted_by(samples: Sequence[Sample]) -> str:
    ways = {sample.is_counted_by_server for sample in samples if sample.is_done}
    return "both" if len(ways) == 2 else "usage" if ways == {True} else "pieces"


def _timeline(taken: Taken, duration_s: float) -> list[Moment]:
    width = duration_s / TIMELINE_POINTS
    pieces = Counter(
        min(TIMELINE_POINTS - 1, int((at - taken.begun_at) / width)) for s in taken.samples for at in s.token_at
    )
    moments = []
    for number in range(TIMELINE_POINTS):
        end = taken.begun_at + (number + 1) * width
        in_flight = sum(s.sent_at <= end < s.ended_at for s in taken.samples if s.ending != Ending.NOT_SENT.value)
        moments.append(Moment(at_s=(number + 1) * width, pieces_per_s=pieces[number] / width, in_flight=in_flight))
    return moments
