"""What a request's machine asks its driver to do."""

from enum import Enum


class Effect(Enum):
    """Each is asked for at most once in a request's life."""

    ABORT_ENGINE = "abort_engine"
    """Tell the engine to let go of the whole request."""
    LEAVE_GATE = "leave_gate"
    """The engine holds nothing of this request any more: give back the permit, or the place in the queue."""
    REPLY_ERROR_STATUS = "reply_error_status"
    """Answer with an error status, then apply SEND_ERROR."""
    REPLY_ERROR_EVENT = "reply_error_event"
    """Send what text there is, then one error event without an end marker, then apply SEND_ERROR."""
    SETTLE = "settle"
    """Both sides have ended: count the request, and forget it. Always the last effect."""
