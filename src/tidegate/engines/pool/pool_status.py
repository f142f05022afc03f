"""What several engines are together: one `EngineStatus` out of many, and one `ModelInfo` out of many.

Counts of a moment are sums over the engines that are ready; totals are sums over all, last ones heard. Rows and blocks
are sums over the engines that get requests. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engines.pool.member_states import TAKEN_OUT, MemberState
from tidegate.inference.model_info import ModelInfo

MOMENTARY = frozenset(
    {"num_waiting", "num_running", "num_held", "blocks_free", "blocks_cached", "blocks_used", "num_constrained"}
)
LATEST = frozenset({"step_s", "num_step_tokens"})
"""Of the latest step: of several engines the longest, and the greatest."""


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One engine of a pool. `num_tokens` and the two after it are what it owes to requests of this process.

    `is_conflicting`: it is ready, and gets nothing because it serves another revision than the pool. `out_for_s` is
    how long it stays ejected at least; None where it is not. `num_lost` requests were lost or refused by it,
    `num_moved` of them were given to another engine.
    """

    name: str
    state: MemberState
    status: EngineStatus
    num_tokens: int
    num_requests: int
    num_sequences: int
    is_conflicting: bool = False
    cause: str | None = None
    out_for_s: float | None = None
    num_submitted: int = 0
    num_lost: int = 0
    num_moved: int = 0
    num_ejections: int = 0
    num_prompt_tokens: int = 0
    num_matched_tokens: int = 0

    @property
    def gets_requests(self) -> bool:
        return self.state in (MemberState.READY, MemberState.PROBING) and not self.is_conflicting

    @property
    def is_usable(self) -> bool:
        """Whether a request would be tried here if nobody else were there."""
        is_in = self.state not in TAKEN_OUT
        return is_in and self.status.is_ready and not self.is_conflicting


def join_gauges(members: Sequence[EngineStatus]) -> EngineGauges:
    """Returns the sums."""
    values: list[float] = []
    for name in EngineGauges.__struct_fields__:
        counted = [one for one in members if one.is_ready] if name in MOMENTARY else members
        numbers = [getattr(one.gauges, name) for one in counted]
        values.append(max(numbers, default=0) if name in LATEST else sum(numbers))
    return msgspec.convert(values, EngineGauges)


def join_models(members: Sequence[MemberStatus]) -> ModelInfo | None:
    """Returns what a request may count on wherever it goes; None while no engine has said anything.

    Rows and blocks are sums over the members that get requests, one row for each that is being probed. When none does,
    they are those of all: what waits for an engine waits for its return.
    """
    known = [(one, one.status.model) for one in members if one.status.model is not None and not one.is_conflicting]
    if not known:
        return None
    active = [pair for pair in known if pair[0].gets_requests and pair[0].status.is_ready] or known
    models = [model for _, model in known]
    first = next((model for _, model in active), models[0])
    rows = sum(1 if one.state is MemberState.PROBING else model.max_sequences for one, model in active)
    blocks = sum(model.num_blocks * model.block_tokens for _, model in active) // first.block_tokens
    texts = [f"{one.name}: {model.memory}" for one, model in known if model.memory is not None]
    chunks = [model.prefill_chunk_tokens for model in models if model.prefill_chunk_tokens is not None]
    steps = [model.max_step_tokens for model in models if model.max_step_tokens is not None]
    return msgspec.structs.replace(
        first,
        max_model_len=min(model.max_model_len for model in models),
        max_sequences=rows,
        num_blocks=blocks,
        has_prefix_cache=all(model.has_prefix_cache for model in models),
        prefill_chunk_tokens=max(chunks, default=None),
        max_step_tokens=max(steps, default=None),
        unserved_fields=tuple(sorted({name for model in models for name in model.unserved_fields})),
        memory="\n".join(texts) or None,
    )


def join_status(members: Sequence[MemberStatus], num_stale_outputs: int) -> EngineStatus:
    """Returns the pool as if it were one engine. It is ready while some member is; its epoch rises with any of theirs.

    Poison is watched for all members of a process together, so that is no sum.
    """
    statuses = [one.status for one in members]
    is_ready = any(one.is_usable for one in members)
    return EngineStatus(
        is_ready=is_ready,
        epoch=sum(one.epoch for one in statuses),
        num_restarts=sum(one.num_restarts for one in statuses),
        num_stale_outputs=num_stale_outputs + sum(one.num_stale_outputs for one in statuses),
        gauges=join_gauges(statuses),
        model=join_models(members),
        process_id=statuses[0].process_id if len(statuses) == 1 else None,
        condition=describe_members(members),
        retry_after_s=min((one.retry_after_s for one in statuses), default=1),
        num_stalls=sum(one.num_stalls for one in statuses),
        num_poison_suspects=max((one.num_poison_suspects for one in statuses), default=0),
        num_poison_refusals=max((one.num_poison_refusals for one in statuses), default=0),
        num_engines=max(1, sum(one.gets_requests and one.status.is_ready for one in members)),
    )


def describe_members(members: Sequence[MemberStatus]) -> str | None:
    """Returns what is wrong, as in `1 of 2 engines is ready; b: the engine is starting`; None where nothing is."""
    unwell = [(one, describe_member(one)) for one in members if describe_member(one) is not None]
    if not unwell:
        return None
    num_ready = sum(one.is_usable for one in members)
    head = f"{num_ready} of {len(members)} engines {'is' if num_ready == 1 else 'are'} ready"
    return "; ".join([head, *(f"{one.name}: {words}" for one, words in unwell)])


def describe_member(one: MemberStatus) -> str | None:
    """Returns why one engine gets no requests, or few; None where it is well."""
    if one.is_conflicting:
        return "it serves another revision than the pool"
    if one.state in TAKEN_OUT:
        words = "taken out by an operator" if one.state is MemberState.DRAINING else "retiring"
        return f"{words}, {one.num_requests} requests left"
    if not one.status.is_ready:
        return one.status.condition or "the engine is not ready"
    if one.state is MemberState.EJECTED:
        return f"ejected: {one.cause}"
    return "on trial" if one.state is MemberState.PROBING else None


def join_statuses(models: Sequence[EngineStatus]) -> EngineStatus:
    """Returns the accounts of several models' engines together: ready when all are, and of no one model."""
    first = next((one for one in models if not one.is_ready), models[0])
    return EngineStatus(
        is_ready=all(one.is_ready for one in models),
        epoch=sum(one.epoch for one in models),
        num_restarts=sum(one.num_restarts for one in models),
        num_stale_outputs=sum(one.num_stale_outputs for one in models),
        gauges=join_gauges(models),
        model=None,
        condition=first.condition,
        retry_after_s=max(one.retry_after_s for one in models),
        num_stalls=sum(one.num_stalls for one in models),
        num_poison_suspects=sum(one.num_poison_suspects for one in models),
        num_poison_refusals=sum(one.num_poison_refusals for one in models),
        num_engines=sum(one.num_engines for one in models),
    )
