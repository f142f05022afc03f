"""The life of one sequence, as a table.

Decides which event is legal in which status. Does not know memory, time, or why an event happened.
"""

from enum import Enum, unique

from tidegate.errors import InternalError
from tidegate.inference.finish import EngineFinish


@unique
class SequenceStatus(Enum):
    """Where a sequence stands."""

    WAITING = "waiting"
    """Has never had memory."""
    PREFILLING = "prefilling"
    """Has memory; its tokens are entering the cache."""
    RUNNING = "running"
    """Is due a token, or has new tokens to feed."""
    PREEMPTED = "preempted"
    """Lost its memory to others; all its tokens will be computed again."""
    FINISHED_EOS = "finished_eos"
    FINISHED_STOP_TOKEN = "finished_stop_token"
    FINISHED_LENGTH = "finished_length"
    FINISHED_ABORTED = "finished_aborted"
    FINISHED_FAILED = "finished_failed"


@unique
class SequenceEvent(Enum):
    """What can happen to a sequence."""

    ADMIT = "admit"
    """Memory and a row were found."""
    PREFILL = "prefill"
    """All its tokens are in the cache."""
    PREEMPT = "preempt"
    """Its memory is taken."""
    END = "end"
    """An end token of the model, or the end of its grammar."""
    STOP = "stop"
    """A stop token of the request."""
    EXHAUST = "exhaust"
    """No token may follow."""
    ABORT = "abort"
    FAIL = "fail"


Table = dict[SequenceStatus, dict[SequenceEvent, SequenceStatus]]

TRANSITIONS: Table = {
    SequenceStatus.WAITING: {
        SequenceEvent.ADMIT: SequenceStatus.PREFILLING,
        # A sibling's prefill may have done all that a request without output wants.
        SequenceEvent.EXHAUST: SequenceStatus.FINISHED_LENGTH,
        SequenceEvent.ABORT: SequenceStatus.FINISHED_ABORTED,
    },
    SequenceStatus.PREFILLING: {
        SequenceEvent.PREFILL: SequenceStatus.RUNNING,
        SequenceEvent.PREEMPT: SequenceStatus.PREEMPTED,
        SequenceEvent.ABORT: SequenceStatus.FINISHED_ABORTED,
    },
    SequenceStatus.RUNNING: {
        SequenceEvent.PREEMPT: SequenceStatus.PREEMPTED,
        SequenceEvent.END: SequenceStatus.FINISHED_EOS,
        SequenceEvent.STOP: SequenceStatus.FINISHED_STOP_TOKEN,
        SequenceEvent.EXHAUST: SequenceStatus.FINISHED_LENGTH,
        SequenceEvent.ABORT: SequenceStatus.FINISHED_ABORTED,
        SequenceEvent.FAIL: SequenceStatus.FINISHED_FAILED,
    },
    SequenceStatus.PREEMPTED: {
        SequenceEvent.ADMIT: SequenceStatus.PREFILLING,
        SequenceEvent.ABORT: SequenceStatus.FINISHED_ABORTED,
    },
    SequenceStatus.FINISHED_EOS: {},
    SequenceStatus.FINISHED_STOP_TOKEN: {},
    SequenceStatus.FINISHED_LENGTH: {},
    SequenceStatus.FINISHED_ABORTED: {},
    SequenceStatus.FINISHED_FAILED: {},
}

EVENT_OF_FINISH: dict[EngineFinish, SequenceEvent] = {
    EngineFinish.EOS: SequenceEvent.END,
    EngineFinish.STOP_TOKEN: SequenceEvent.STOP,
    EngineFinish.LENGTH: SequenceEvent.EXHAUST,
    EngineFinish.ABORTED: SequenceEvent.ABORT,
    EngineFinish.FAILED: SequenceEvent.FAIL,
    EngineFinish.GRAMMAR_COMPLETE: SequenceEvent.END,
    EngineFinish.GRAMMAR_DEAD_END: SequenceEvent.EXHAUST,
    EngineFinish.POOLED: SequenceEvent.END,
}


def next_status(status: SequenceStatus, event: SequenceEvent) -> SequenceStatus:
    """Returns the status after `event`. Raises InternalError when the table has no such row."""
    after = TRANSITIONS[status].get(event)
    if after is None:
        raise InternalError(f"a sequence that is {status.value} cannot {event.value}")
    return after
