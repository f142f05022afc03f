"""What can happen to a request, told to its machine."""

from enum import IntEnum


class Event(IntEnum):
    """The first group moves the work, the second the reply."""

    ADMIT = 0
    """Admission gave a permit."""
    REFUSE = 1
    """The request was turned down before it had a permit."""
    SUBMIT = 2
    """The engine took the request."""
    OUTPUT = 3
    """Tokens came, and more will."""
    STOP = 4
    """The text side has all it wants of every choice; the engine does not know yet."""
    FINISH = 5
    """The last choice ended by itself."""
    FAIL = 6
    """The engine refused the request, failed it, gave it up, or is lost. It no longer works on it."""
    ABORT_ACK = 7
    """The last choice ended because we asked."""
    EXPIRE = 8
    """The server ends the work: a deadline, the end of a drain, an operator, a failure of our own. May come late."""

    SEND_HEAD = 9
    SEND_FRAME = 10
    SEND_DONE = 11
    """The end marker of a stream."""
    SEND_WHOLE = 12
    SEND_ERROR = 13
    """An error: a status while UNSENT, a last event while STREAMING."""
    DISCONNECT = 14
    """Nobody reads any more: the client went away, or was too slow."""
