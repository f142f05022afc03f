"""The tables of a request's life, and nothing else. `machine.py` compiles them; tests/lifecycle enumerates them.

WORK and REPLY are triggered by events, one table for each side. JOINT is triggered by states: after every event it is
applied until no row matches. SENDABLE says which work allows a send; a send that it does not name is always allowed.
"""

from tidegate.lifecycle.events import Event
from tidegate.lifecycle.states import Reply, Work

WORK: dict[Work, dict[Event, Work]] = {
    Work.RECEIVED: {
        Event.ADMIT: Work.ADMITTED,
        Event.REFUSE: Work.FAILED,
        Event.EXPIRE: Work.FAILED,
    },
    Work.ADMITTED: {
        Event.SUBMIT: Work.RUNNING,
        Event.FAIL: Work.FAILED,
        Event.EXPIRE: Work.FAILED,
    },
    Work.RUNNING: {
        Event.OUTPUT: Work.RUNNING,
        Event.STOP: Work.STOPPED,
        Event.FINISH: Work.FINISHED,
        Event.FAIL: Work.FAILED,
        Event.EXPIRE: Work.ABORTING,
    },
    Work.STOPPED: {
        Event.OUTPUT: Work.STOPPED,
        Event.FINISH: Work.FINISHED,
        Event.FAIL: Work.FINISHED,
        Event.ABORT_ACK: Work.FINISHED,
        Event.EXPIRE: Work.STOPPED,
    },
    Work.ABORTING: {
        Event.OUTPUT: Work.ABORTING,
        Event.FINISH: Work.ABORTED,
        Event.FAIL: Work.ABORTED,
        Event.ABORT_ACK: Work.ABORTED,
        Event.EXPIRE: Work.ABORTING,
    },
    Work.FINISHED: {Event.EXPIRE: Work.FINISHED},
    Work.FAILED: {Event.EXPIRE: Work.FAILED},
    Work.ABORTED: {Event.EXPIRE: Work.ABORTED},
}

REPLY: dict[Reply, dict[Event, Reply]] = {
    Reply.UNSENT: {
        Event.SEND_HEAD: Reply.STREAMING,
        Event.SEND_WHOLE: Reply.SENT,
        Event.SEND_ERROR: Reply.SENT_ERROR,
        Event.DISCONNECT: Reply.ABANDONED,
    },
    Reply.STREAMING: {
        Event.SEND_FRAME: Reply.STREAMING,
        Event.SEND_DONE: Reply.SENT,
        Event.SEND_ERROR: Reply.SENT_ERROR,
        Event.DISCONNECT: Reply.ABANDONED,
    },
    Reply.SENT: {Event.DISCONNECT: Reply.SENT},
    Reply.SENT_ERROR: {Event.DISCONNECT: Reply.SENT_ERROR},
    Reply.ABANDONED: {Event.DISCONNECT: Reply.ABANDONED},
}

JOINT: dict[tuple[Work, Reply], Work] = {
    # The client is gone before the engine knew of the request.
    (Work.RECEIVED, Reply.ABANDONED): Work.ABORTED,
    (Work.ADMITTED, Reply.ABANDONED): Work.ABORTED,
    # The driver answered with an error of its own before the engine knew.
    (Work.RECEIVED, Reply.SENT_ERROR): Work.FAILED,
    (Work.ADMITTED, Reply.SENT_ERROR): Work.FAILED,
    # Nobody will read what the engine is working on.
    (Work.RUNNING, Reply.ABANDONED): Work.ABORTING,
    (Work.RUNNING, Reply.SENT_ERROR): Work.ABORTING,
}

SENDABLE: dict[Event, frozenset[Work]] = {
    # A request may wait in the queue for longer than its status may be held.
    Event.SEND_HEAD: frozenset({Work.RECEIVED, Work.ADMITTED, Work.RUNNING, Work.STOPPED, Work.FINISHED}),
    Event.SEND_WHOLE: frozenset({Work.STOPPED, Work.FINISHED}),
    Event.SEND_DONE: frozenset({Work.STOPPED, Work.FINISHED}),
}
