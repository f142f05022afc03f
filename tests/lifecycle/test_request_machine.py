"""Whole lives of requests: the events in order, and what the driver is asked to do."""

import pytest

from tidegate.errors import InternalError
from tidegate.lifecycle.effects import Effect
from tidegate.lifecycle.events import Event as E
from tidegate.lifecycle.machine import RequestMachine
from tidegate.lifecycle.states import Reply, Work

ABORT, RELEASE, SETTLE = Effect.ABORT_ENGINE, Effect.LEAVE_GATE, Effect.SETTLE
STATUS, EVENT = Effect.REPLY_ERROR_STATUS, Effect.REPLY_ERROR_EVENT
RUN = [E.ADMIT, E.SUBMIT]
STREAM = [*RUN, E.OUTPUT, E.SEND_HEAD, E.SEND_FRAME]

LIVES = {
    "a whole reply": ([*RUN, E.OUTPUT, E.FINISH, E.SEND_WHOLE], [RELEASE, SETTLE]),
    "a stream": ([*STREAM, E.OUTPUT, E.FINISH, E.SEND_FRAME, E.SEND_DONE], [RELEASE, SETTLE]),
    "a stop string in a stream": ([*STREAM, E.STOP, E.SEND_DONE, E.OUTPUT, E.ABORT_ACK], [ABORT, RELEASE, SETTLE]),
    "a stop that crosses the natural end": ([*STREAM, E.STOP, E.FINISH, E.SEND_DONE], [ABORT, RELEASE, SETTLE]),
    "the engine is lost after a stop": ([*STREAM, E.STOP, E.FAIL, E.SEND_DONE], [ABORT, RELEASE, SETTLE]),
    "refused by admission": ([E.REFUSE, E.SEND_ERROR], [RELEASE, STATUS, SETTLE]),
    "refused by the engine": ([E.ADMIT, E.FAIL, E.SEND_ERROR], [RELEASE, STATUS, SETTLE]),
    "failed before the head": ([*RUN, E.FAIL, E.SEND_ERROR], [RELEASE, STATUS, SETTLE]),
    "failed in the stream": ([*STREAM, E.FAIL, E.SEND_FRAME, E.SEND_ERROR], [RELEASE, EVENT, SETTLE]),
    "expired before admission": ([E.EXPIRE, E.SEND_ERROR], [RELEASE, STATUS, SETTLE]),
    "refused after a long wait": ([E.SEND_HEAD, E.REFUSE, E.SEND_ERROR], [RELEASE, EVENT, SETTLE]),
    "admitted after a long wait": ([E.SEND_HEAD, *RUN, E.FINISH, E.SEND_FRAME, E.SEND_DONE], [RELEASE, SETTLE]),
    "expired before the head": ([*RUN, E.EXPIRE, E.SEND_ERROR, E.ABORT_ACK], [ABORT, STATUS, RELEASE, SETTLE]),
    "expired in the stream": ([*STREAM, E.EXPIRE, E.ABORT_ACK, E.SEND_ERROR], [ABORT, EVENT, RELEASE, SETTLE]),
    "expired too late": ([*STREAM, E.FINISH, E.EXPIRE, E.SEND_DONE, E.EXPIRE], [RELEASE, SETTLE]),
    "gone before admission": ([E.DISCONNECT], [RELEASE, SETTLE]),
    "gone before the engine knew": ([E.ADMIT, E.DISCONNECT], [RELEASE, SETTLE]),
    "gone while it runs": ([*STREAM, E.DISCONNECT, E.OUTPUT, E.ABORT_ACK], [ABORT, RELEASE, SETTLE]),
    "gone, and the engine too": ([*STREAM, E.DISCONNECT, E.FAIL], [ABORT, RELEASE, SETTLE]),
    "gone after the last token": ([*STREAM, E.FINISH, E.DISCONNECT], [RELEASE, SETTLE]),
    "gone after the end marker": ([*STREAM, E.FINISH, E.SEND_DONE, E.DISCONNECT], [RELEASE, SETTLE]),
    "our own failure in the stream": ([*STREAM, E.SEND_ERROR, E.DISCONNECT, E.ABORT_ACK], [ABORT, RELEASE, SETTLE]),
}


@pytest.mark.parametrize(("events", "effects"), LIVES.values(), ids=LIVES.keys())
def test_a_life_asks_for_these_effects_and_settles(events: list[E], effects: list[Effect]) -> None:
    machine = RequestMachine()
    asked: list[Effect] = []
    for event in events:
        assert machine.allows(event)
        asked += machine.apply(event)
    assert asked == effects
    assert machine.is_settled
    assert not machine.is_reply_open


def test_an_illegal_event_names_itself_and_both_states_and_changes_nothing() -> None:
    machine = RequestMachine()
    machine.apply(E.ADMIT)
    assert not machine.allows(E.OUTPUT)
    with pytest.raises(InternalError, match=r"OUTPUT .* ADMITTED .* UNSENT"):
        machine.apply(E.OUTPUT)
    assert (machine.work, machine.reply) == (Work.ADMITTED, Reply.UNSENT)


def test_success_waits_for_the_whole_result_and_no_head_follows_a_failure() -> None:
    machine = RequestMachine()
    assert machine.allows(E.SEND_HEAD)
    machine.apply(E.ADMIT)
    machine.apply(E.SUBMIT)
    assert machine.allows(E.SEND_HEAD)
    assert not machine.allows(E.SEND_WHOLE)
    machine.apply(E.FAIL)
    assert not machine.allows(E.SEND_HEAD)
    assert machine.is_reply_open


def test_it_says_where_it_stands() -> None:
    assert repr(RequestMachine()) == "RequestMachine(RECEIVED, UNSENT)"
