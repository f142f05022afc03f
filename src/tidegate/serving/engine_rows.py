"""What operators and metrics are told of each engine of a server, one row an engine."""

import msgspec

from tidegate.engine.gauges import EngineStatus
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.pool_status import MemberStatus, describe_member
from tidegate.serving.served_model import ServedModel


class EngineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One engine. `state` is a word of `engines/pool/member_states.py`. `requests` and the two after it are what it
    owes to requests of this process. `lost` counts requests that it refused or lost, `moved` those of them that
    another engine took over; `matched_tokens` of its `prompt_tokens` were expected in its cache.
    """

    name: str
    model: str
    state: str
    ready: bool
    condition: str | None
    revision: str | None
    epoch: int
    process_id: int | None
    restarts: int
    rows: int | None
    requests: int
    sequences: int
    outstanding_tokens: int
    submitted: int
    lost: int
    moved: int
    ejections: int
    ejected_for_s: float | None
    prompt_tokens: int
    matched_tokens: int


def row_of_member(one: MemberStatus, served: ServedModel) -> EngineRow:
    """Returns the row of a pool's engine."""
    status = one.status
    return EngineRow(
        name=one.name,
        model=served.name,
        state=one.state.value,
        ready=one.is_usable,
        condition=describe_member(one),
        revision=None if status.model is None else served.revision(status.model),
        epoch=status.epoch,
        process_id=status.process_id,
        restarts=status.num_restarts,
        rows=None if status.model is None else status.model.max_sequences,
        requests=one.num_requests,
        sequences=one.num_sequences,
        outstanding_tokens=one.num_tokens,
        submitted=one.num_submitted,
        lost=one.num_lost,
        moved=one.num_moved,
        ejections=one.num_ejections,
        ejected_for_s=None if one.out_for_s is None else round(one.out_for_s, 3),
        prompt_tokens=one.num_prompt_tokens,
        matched_tokens=one.num_matched_tokens,
    )


def row_of_engine(name: str, status: EngineStatus, served: ServedModel) -> EngineRow:
    """Returns the row of an engine that is alone with its model: it is in as soon as it is ready."""
    state = MemberState.READY if status.is_ready else MemberState.STARTING
    alone = MemberStatus(
        name=name,
        state=state,
        status=status,
        num_tokens=0,
        num_requests=status.gauges.num_running + status.gauges.num_waiting if status.is_ready else 0,
        num_sequences=status.gauges.num_running if status.is_ready else 0,
    )
    return row_of_member(alone, served)
