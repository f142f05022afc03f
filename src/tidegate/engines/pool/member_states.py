"""The states of one engine of a pool, as a table. `member_health.py` says when an event happens.

An event without a row changes nothing.
"""

from enum import Enum


class MemberState(Enum):
    STARTING = "starting"
    """It has never been ready."""
    READY = "ready"
    """It gets requests."""
    EJECTED = "ejected"
    """It failed, and gets none until its wait is over and it says that it is ready."""
    PROBING = "probing"
    """Its wait is over: it gets one request at a time until it has answered one."""
    DRAINING = "draining"
    """An operator took it out: it gets none until it is returned."""
    RETIRING = "retiring"
    """It finishes what it has and then leaves: it gets none, unless it is returned before."""
    GONE = "gone"
    """It has left the pool."""


TAKEN_OUT = frozenset({MemberState.DRAINING, MemberState.RETIRING, MemberState.GONE})
"""Whoever runs the server decided it: such an engine is not tried, not even as the last one."""


class MemberEvent(Enum):
    UP = "up"
    """It says that it is ready, for the first time."""
    DOWN = "down"
    """It says that it is not ready, or serves what the pool does not."""
    FAULT = "fault"
    """It refused or lost requests though it says that it is ready, too often in a row."""
    WAIT_OVER = "wait over"
    """It has been out for as long as it should, and says that it is ready."""
    PROOF = "proof"
    """An output of it came."""
    DRAIN = "drain"
    RETIRE = "retire"
    RETURN = "return"
    LEAVE = "leave"


_OUT: dict[MemberEvent, MemberState] = {
    MemberEvent.DRAIN: MemberState.DRAINING,
    MemberEvent.RETIRE: MemberState.RETIRING,
    MemberEvent.LEAVE: MemberState.GONE,
}

MEMBER: dict[MemberState, dict[MemberEvent, MemberState]] = {
    MemberState.STARTING: {MemberEvent.UP: MemberState.READY, **_OUT},
    MemberState.READY: {MemberEvent.DOWN: MemberState.EJECTED, MemberEvent.FAULT: MemberState.EJECTED, **_OUT},
    MemberState.EJECTED: {MemberEvent.WAIT_OVER: MemberState.PROBING, **_OUT},
    MemberState.PROBING: {
        MemberEvent.PROOF: MemberState.READY,
        MemberEvent.DOWN: MemberState.EJECTED,
        MemberEvent.FAULT: MemberState.EJECTED,
        **_OUT,
    },
    MemberState.DRAINING: {
        MemberEvent.RETURN: MemberState.PROBING,
        MemberEvent.RETIRE: MemberState.RETIRING,
        MemberEvent.LEAVE: MemberState.GONE,
    },
    MemberState.RETIRING: {MemberEvent.RETURN: MemberState.PROBING, MemberEvent.LEAVE: MemberState.GONE},
    MemberState.GONE: {},
}
