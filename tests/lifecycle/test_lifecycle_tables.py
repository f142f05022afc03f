"""The whole joint state space, enumerated: invariants hold, and no row of any table can go unnoticed."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tidegate.lifecycle.effects import Effect
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.machine import PAIRS, TABLES, Pair, Tables, compile_steps
from tidegate.lifecycle.states import REPLY_ENDED, WORK_ENDED, Reply, Work

START = (Work.RECEIVED, Reply.UNSENT)
NEVER_ABORTED = {Work.RECEIVED, Work.ADMITTED, Work.RUNNING, Work.FAILED}
BEING_ABORTED = {Work.STOPPED, Work.ABORTING}

# What each peer may send, whatever we have done: written by hand, from the ports and the contract.
EXPECTED_BY_WORK = {
    Work.RECEIVED: {Event.ADMIT, Event.REFUSE},
    Work.ADMITTED: {Event.SUBMIT, Event.FAIL},
    Work.RUNNING: {Event.OUTPUT, Event.STOP, Event.FINISH, Event.FAIL},
    Work.STOPPED: {Event.OUTPUT, Event.FINISH, Event.FAIL, Event.ABORT_ACK},
    Work.ABORTING: {Event.OUTPUT, Event.FINISH, Event.FAIL, Event.ABORT_ACK},
    Work.FINISHED: set(),
    Work.FAILED: set(),
    Work.ABORTED: set(),
}
EXPECTED_BY_REPLY = {
    Reply.UNSENT: {Event.SEND_ERROR},
    Reply.STREAMING: {Event.SEND_FRAME, Event.SEND_ERROR},
    Reply.SENT: set(),
    Reply.SENT_ERROR: set(),
    Reply.ABANDONED: set(),
}
EXPECTED_ALWAYS = {Event.EXPIRE, Event.DISCONNECT}
EXPECTED_BY_PAIR = {
    (Work.RECEIVED, Reply.UNSENT): {Event.SEND_HEAD},
    (Work.ADMITTED, Reply.UNSENT): {Event.SEND_HEAD},
    (Work.RUNNING, Reply.UNSENT): {Event.SEND_HEAD},
    (Work.STOPPED, Reply.UNSENT): {Event.SEND_HEAD, Event.SEND_WHOLE},
    (Work.FINISHED, Reply.UNSENT): {Event.SEND_HEAD, Event.SEND_WHOLE},
    (Work.STOPPED, Reply.STREAMING): {Event.SEND_DONE},
    (Work.FINISHED, Reply.STREAMING): {Event.SEND_DONE},
}


def edges(tables: Tables) -> dict[Pair, list[tuple[Event, Pair, tuple[Effect, ...]]]]:
    found: dict[Pair, list[tuple[Event, Pair, tuple[Effect, ...]]]] = {}
    for pair, row in zip(PAIRS, compile_steps(tables), strict=True):
        found[pair] = [(event, PAIRS[step[0]], step[1]) for event, step in zip(Event, row, strict=True) if step]
    return found


def reachable(tables: Tables, start: Pair = START) -> set[Pair]:
    graph, seen, todo = edges(tables), {start}, [start]
    while todo:
        for _, pair, _ in graph[todo.pop()]:
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return seen


def is_settled(pair: Pair) -> bool:
    return pair[0] in WORK_ENDED and pair[1] in REPLY_ENDED


def stuck_pairs(tables: Tables) -> list[object]:
    return [pair for pair in reachable(tables) if not any(map(is_settled, reachable(tables, pair)))]


def orphaned_work(tables: Tables) -> list[object]:
    held = {Work.RECEIVED, Work.ADMITTED, Work.RUNNING}
    return [pair for pair in reachable(tables) if pair[1] in REPLY_ENDED and pair[0] in held]


def mute_pairs(tables: Tables) -> list[object]:
    graph = edges(tables)
    sends = {Event.SEND_HEAD, Event.SEND_FRAME, Event.SEND_DONE, Event.SEND_WHOLE, Event.SEND_ERROR}
    open_pairs = [pair for pair in reachable(tables) if pair[1] not in REPLY_ENDED]
    return [pair for pair in open_pairs if not sends & {event for event, _, _ in graph[pair]}]


def missing_inputs(tables: Tables) -> list[object]:
    graph = edges(tables)
    missing: list[object] = []
    for pair in reachable(TABLES):
        expected = EXPECTED_BY_WORK[pair[0]] | EXPECTED_BY_REPLY[pair[1]] | EXPECTED_ALWAYS
        expected |= EXPECTED_BY_PAIR.get(pair, set())
        missing += [(pair, event) for event in expected - {event for event, _, _ in graph[pair]}]
    return missing


def false_promises(tables: Tables) -> list[object]:
    """A success without the whole result, or a head for what has failed."""
    return [
        (work, reply)
        for work, reply in reachable(tables)
        if reply is Reply.SENT and work not in {Work.STOPPED, Work.FINISHED}
    ] + [
        (pair, event)
        for pair, row in edges(tables).items()
        for event, _, _ in row
        if event is Event.SEND_HEAD and pair[0] in {Work.FAILED, Work.ABORTING, Work.ABORTED}
    ]


def unbalanced_effects(tables: Tables) -> list[object]:
    """Walks pairs together with the effects so far: each at most once, places and aborts balanced at the end."""
    graph = edges(tables)
    start = (START, frozenset[Effect]())
    seen, todo, wrong = {start}, [start], []
    while todo:
        pair, done = todo.pop()
        for event, new, effects in graph[pair]:
            if len(set(effects)) < len(effects) or done & set(effects):
                wrong.append((pair, event, effects))
            node = (new, done | set(effects))
            wrong += list(wrong_balance(*node, effects))
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return wrong


def wrong_balance(pair: Pair, done: frozenset[Effect], last: tuple[Effect, ...]) -> Iterator[object]:
    work, reply = pair
    if (Effect.LEAVE_GATE in done) != (work in WORK_ENDED):
        yield pair, "place"
    has_aborted = Effect.ABORT_ENGINE in done
    if has_aborted if work in NEVER_ABORTED else work in BEING_ABORTED and not has_aborted:
        yield pair, "abort"
    if (Effect.SETTLE in done) != is_settled(pair) or (Effect.SETTLE in last and last[-1] is not Effect.SETTLE):
        yield pair, "settle"
    errors = done & {Effect.REPLY_ERROR_STATUS, Effect.REPLY_ERROR_EVENT}
    if work in {Work.FAILED, Work.ABORTING, Work.ABORTED} and reply not in REPLY_ENDED and len(errors) != 1:
        yield pair, "error"


INVARIANTS: list[Callable[[Tables], list[object]]] = [
    stuck_pairs,
    orphaned_work,
    mute_pairs,
    missing_inputs,
    false_promises,
    unbalanced_effects,
]


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_the_tables_keep_every_invariant(invariant: Callable[[Tables], list[object]]) -> None:
    assert invariant(TABLES) == []


def test_the_reachable_pairs_are_these() -> None:
    pairs = reachable(TABLES)
    unreachable = {
        *((work, reply) for work in (Work.RECEIVED, Work.ADMITTED, Work.RUNNING) for reply in REPLY_ENDED),
        *((work, Reply.SENT) for work in (Work.ABORTING, Work.FAILED, Work.ABORTED)),
    }
    assert pairs == set(PAIRS) - unreachable
    assert sum(map(is_settled, pairs)) == 7


def test_a_settled_request_changes_no_more() -> None:
    graph = edges(TABLES)
    for pair in filter(is_settled, reachable(TABLES)):
        assert {event for event, _, _ in graph[pair]} == {Event.EXPIRE, Event.DISCONNECT}
        assert all(new == pair and effects == () for _, new, effects in graph[pair])


def damaged_tables() -> Iterator[tuple[str, Tables]]:
    for work, row in TABLES.work.items():
        for event in row:
            rest = {key: value for key, value in row.items() if key is not event}
            yield f"WORK {work.name} {event.name}", replace(TABLES, work={**TABLES.work, work: rest})
    for reply, sends in TABLES.reply.items():
        for event in sends:
            left = {key: value for key, value in sends.items() if key is not event}
            yield f"REPLY {reply.name} {event.name}", replace(TABLES, reply={**TABLES.reply, reply: left})
    for pair in TABLES.joint:
        joint = {key: value for key, value in TABLES.joint.items() if key != pair}
        yield f"JOINT {pair[0].name} {pair[1].name}", replace(TABLES, joint=joint)
    for event, allowed in TABLES.sendable.items():
        sendable = {key: value for key, value in TABLES.sendable.items() if key is not event}
        yield f"SENDABLE {event.name}", replace(TABLES, sendable=sendable)
        for work in allowed:
            yield (
                f"SENDABLE {event.name} {work.name}",
                replace(TABLES, sendable={**TABLES.sendable, event: allowed - {work}}),
            )


@pytest.mark.parametrize(
    ("name", "tables"), list(damaged_tables()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_missing_row_is_noticed(name: str, tables: Tables) -> None:
    assert any(invariant(tables) for invariant in INVARIANTS), name
