"""RequestMachine: one request's life, from receipt to the moment when both the engine and the client are done with it.

Decides which events are legal, what state follows, and what the driver has to do. The rules are the four tables of
`transitions.py`, compiled once into one table over pairs of states: an event costs one look-up.

Effects: entering STOPPED or ABORTING asks for ABORT_ENGINE (only RUNNING leads there, and the two exclude each other,
so the engine is told once). Ended work gives back its permit, or its place in the queue. FAILED or ABORTING while the
reply is open asks for an error, as a status while nothing was sent, as an event after the head. When both sides have
ended: SETTLE.

A stop comes from the text side and does not wait for the client: that is why STOPPED exists. A choice among several
that ends alone is counted by the driver and does not move this machine. Text that came before a failure may still
be sent: SEND_FRAME is legal until SEND_ERROR.

Does not know: HTTP, epochs (the fence drops stale outputs before they get here), time, which error it is, how many
choices there are.
"""

from dataclasses import dataclass

from tidegate.errors import InternalError
from tidegate.lifecycle import transitions
from tidegate.lifecycle.effects import Effect
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.states import PLACE_HELD, REPLY_ENDED, WORK_ENDED, Reply, Work

Pair = tuple[Work, Reply]
Step = tuple[int, tuple[Effect, ...]]
"""The index of the next pair, and what to do."""

PAIRS: tuple[Pair, ...] = tuple((work, reply) for work in Work for reply in Reply)


@dataclass(frozen=True, slots=True)
class Tables:
    """One set of rules; tests compile damaged ones to prove that the damage shows."""

    work: dict[Work, dict[Event, Work]]
    reply: dict[Reply, dict[Event, Reply]]
    joint: dict[Pair, Work]
    sendable: dict[Event, frozenset[Work]]


TABLES = Tables(transitions.WORK, transitions.REPLY, transitions.JOINT, transitions.SENDABLE)


def _move(tables: Tables, pair: Pair, event: Event) -> Pair | None:
    """Returns the pair after `event` alone, None where it has no row."""
    work, reply = pair
    next_work = tables.work[work].get(event)
    if next_work is not None:
        return next_work, reply
    next_reply = tables.reply[reply].get(event)
    allowed = tables.sendable.get(event)
    if next_reply is None or (allowed is not None and work not in allowed):
        return None
    return work, next_reply


def _effects_between(old: Pair, new: Pair) -> tuple[Effect, ...]:
    """Returns what the change from `old` to `new` asks for, in the order to do it."""
    (old_work, old_reply), (work, reply) = old, new
    effects: list[Effect] = []
    if work is not old_work:
        if work in (Work.STOPPED, Work.ABORTING):
            effects.append(Effect.ABORT_ENGINE)
        if work in WORK_ENDED and old_work in PLACE_HELD:
            effects.append(Effect.LEAVE_GATE)
        if work in (Work.FAILED, Work.ABORTING):
            if reply is Reply.UNSENT:
                effects.append(Effect.REPLY_ERROR_STATUS)
            elif reply is Reply.STREAMING:
                effects.append(Effect.REPLY_ERROR_EVENT)
    was_settled = old_work in WORK_ENDED and old_reply in REPLY_ENDED
    if work in WORK_ENDED and reply in REPLY_ENDED and not was_settled:
        effects.append(Effect.SETTLE)
    return tuple(effects)


def compile_steps(tables: Tables) -> list[list[Step | None]]:
    """Returns, for each pair in the order of PAIRS and each event, the step to take; None where there is no row."""
    index = {pair: i for i, pair in enumerate(PAIRS)}
    steps: list[list[Step | None]] = []
    for start in PAIRS:
        row: list[Step | None] = []
        for event in Event:
            moved = _move(tables, start, event)
            if moved is None:
                row.append(None)
                continue
            while (pulled := tables.joint.get(moved)) is not None:
                moved = (pulled, moved[1])
            row.append((index[moved], _effects_between(start, moved)))
        steps.append(row)
    return steps


_STEPS = compile_steps(TABLES)
_START = PAIRS.index((Work.RECEIVED, Reply.UNSENT))
_IS_SETTLED = [work in WORK_ENDED and reply in REPLY_ENDED for work, reply in PAIRS]
_IS_REPLY_OPEN = [reply not in REPLY_ENDED for _, reply in PAIRS]


class RequestMachine:
    """One request. Begins as RECEIVED and UNSENT."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at = _START

    @property
    def work(self) -> Work:
        return PAIRS[self._at][0]

    @property
    def reply(self) -> Reply:
        return PAIRS[self._at][1]

    @property
    def is_reply_open(self) -> bool:
        """Whether something may still be sent."""
        return _IS_REPLY_OPEN[self._at]

    @property
    def is_settled(self) -> bool:
        """Whether both sides have ended. Stays true."""
        return _IS_SETTLED[self._at]

    def allows(self, event: Event) -> bool:
        """Says whether `apply(event)` would succeed now."""
        return _STEPS[self._at][event] is not None

    def apply(self, event: Event) -> tuple[Effect, ...]:
        """Takes one event; returns what to do, in order.

        Raises InternalError, naming states and event and changing nothing, when the event has no row here.
        """
        step = _STEPS[self._at][event]
        if step is None:
            work, reply = PAIRS[self._at]
            raise InternalError(f"event {event.name} is not legal with work {work.name} and reply {reply.name}")
        self._at, effects = step
        return effects

    def __repr__(self) -> str:
        return f"RequestMachine({self.work.name}, {self.reply.name})"
