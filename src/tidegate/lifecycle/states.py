"""The two states of a request: what the engine does for it, and what its client has seen."""

from enum import IntEnum


class Work(IntEnum):
    """What the engine does for us."""

    RECEIVED = 0
    """Known, not admitted: it waits for a permit."""
    ADMITTED = 1
    """A permit is held; the engine does not know of it."""
    RUNNING = 2
    STOPPED = 3
    """We have all we want, the engine has been told, and has not yet said that it let go."""
    ABORTING = 4
    """Nobody wants it any more, the engine has been told, and has not yet said that it let go."""
    FINISHED = 5
    FAILED = 6
    ABORTED = 7


class Reply(IntEnum):
    """What the client has seen."""

    UNSENT = 0
    STREAMING = 1
    """The head of an event stream is out: the status can no longer change."""
    SENT = 2
    """A whole body, or a stream up to its end marker."""
    SENT_ERROR = 3
    """An error, as a status or as the last event of a stream."""
    ABANDONED = 4
    """Nobody reads any more."""


WORK_ENDED = frozenset({Work.FINISHED, Work.FAILED, Work.ABORTED})
REPLY_ENDED = frozenset({Reply.SENT, Reply.SENT_ERROR, Reply.ABANDONED})
PLACE_HELD = frozenset({Work.RECEIVED, Work.ADMITTED, Work.RUNNING, Work.STOPPED, Work.ABORTING})
"""A place in the queue, then a permit, through STOPPED and ABORTING: the engine owns blocks until it says otherwise."""
