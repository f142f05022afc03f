"""One gate for several server processes: what crosses the socket, and what comes back when a process is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tidegate.engine.framing import frame
from tidegate.errors import (
    DeadlineUnreachable,
    EngineUnavailable,
    LimitFact,
    NoCapacity,
    QueueFull,
    RateFacts,
    RateLimited,
    ServeError,
    ServerDraining,
)
from tidegate.lifecycle.drain import Drain, DrainEvent
from tidegate.lifecycle.poison import PoisonWatch, Suspect, death_id
from tidegate.lifecycle.principal import ANONYMOUS, Principal, Quotas
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot
from tidegate.serving.gate_messages import describe_refusal, make_error
from tidegate.serving.gate_server import GateServer
from tidegate.serving.remote_gate import RemoteGate

RATE = RateFacts(limit_requests=9, remaining_requests=8, reset_requests_s=1.5)
LIMITED = Principal("k1", "somebody", quotas=Quotas(concurrency=1))


@dataclass
class ScriptedGate:
    """Admits when told to; gives each key as many slots as its quota says."""

    waiting: dict[str, Entrant] = field(default_factory=dict)
    tickets: dict[str, Ticket] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    num_slots: int = 0
    claims: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.claims.set()

    async def claim_slot(self, principal: Principal) -> KeySlot:
        await self.claims.wait()
        if self.num_slots >= (principal.quotas.concurrency or 0):
            raise RateLimited("too many", retry_after_s=2, limit=LimitFact("concurrency", 1, 2, "key"))
        self.num_slots += 1
        return _GivenSlot(self)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        self.waiting[ticket.ticket_id] = entrant
        self.tickets[ticket.ticket_id] = ticket
        self.log.append(("enter", ticket.ticket_id))

    def note_started(self, ticket_id: str) -> None:
        self.log.append(("started", ticket_id))

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        self.log.append((f"leave {num_tokens}", ticket_id))

    def statistics(self) -> None:
        return None


class _GivenSlot:
    def __init__(self, gate: ScriptedGate) -> None:
        self._gate = gate

    def release(self) -> None:
        self._gate.num_slots -= 1


@dataclass
class Waiter:
    """An entrant that remembers."""

    told: list[object] = field(default_factory=list)

    def admit(self, rate: RateFacts | None) -> None:
        self.told.append(rate)

    def refuse(self, error: ServeError) -> None:
        self.told.append(error)


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not check():
            await asyncio.sleep(0.001)


def ticket(name: str) -> Ticket:
    return Ticket(name, "k1", 2, 30, 40, 5, 1.5, priority=-3, first_token_by=9.25, quotas=Quotas(tokens_per_minute=7))


@dataclass
class Scene:
    """A gate, its server, and one process that asks. `poison` is what the server and that process hold."""

    gate: ScriptedGate
    server: GateServer
    remote: RemoteGate
    drain: Drain
    path: Path
    reports: list[str]
    poison: tuple[PoisonWatch, PoisonWatch]

    async def enter(self, name: str) -> Waiter:
        waiter = Waiter()
        self.remote.enter(ticket(name), waiter)
        await until(lambda: name in self.gate.waiting)
        return waiter


def play(tmp_path: Path, act: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        gate, drain, reports = ScriptedGate(), Drain(), []
        kept, own = PoisonWatch(), PoisonWatch()
        server = GateServer(gate, reports.append, {"m": kept})
        path = tmp_path / "gate.sock"
        await server.start(path)
        remote = RemoteGate(path, drain, {"m": own})
        remote.start()
        try:
            await until(lambda: remote.is_connected)
            await act(Scene(gate, server, remote, drain, path, reports, (kept, own)))
        finally:
            await remote.aclose()
            await server.aclose()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_what_one_process_holds_against_a_request_is_told_to_all_and_to_those_who_come_later(tmp_path: Path) -> None:
    def has_heard(watch: PoisonWatch) -> bool:
        return watch.refuses(b"p", 5.0)

    async def act(scene: Scene) -> None:
        kept, own = scene.poison
        second, third = PoisonWatch(), PoisonWatch()
        other = RemoteGate(scene.path, Drain(), {"m": second, "another": PoisonWatch()})
        other.start()
        await until(lambda: other.is_connected)
        own.note_death([Suspect(b"p", has_output=False)], 4.0, death_id("one"))
        await until(lambda: second.statistics().num_suspects)
        assert second.note_death([Suspect(b"p", has_output=False)], 4.0, death_id("one")) == 0, "the same one"
        assert not has_heard(second)
        assert second.note_death([Suspect(b"p", has_output=False)], 4.0, death_id("another")) == 1
        for watch in (own, kept, second):
            await until(lambda watch=watch: has_heard(watch))  # type: ignore[misc]
        late = RemoteGate(scene.path, Drain(), {"m": third})
        late.start()
        await until(lambda: has_heard(third))
        own.note_completed(b"p")
        await until(lambda: not any(has_heard(watch) for watch in (kept, second, third)))
        await other.aclose()
        await late.aclose()

    play(tmp_path, act)


def test_a_ticket_crosses_whole_and_the_answers_come_back(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        waiter = await scene.enter("a")
        assert scene.gate.tickets["a"] == ticket("a")
        scene.gate.waiting["a"].admit(RATE)
        await until(lambda: waiter.told)
        assert waiter.told == [RATE]
        scene.remote.note_started("a")
        scene.remote.leave("a", 17)
        scene.remote.leave("a", 17)
        await until(lambda: len(scene.gate.log) == 3)
        assert scene.gate.log == [("enter", "a"), ("started", "a"), ("leave 17", "a")]
        assert scene.server.num_held == 0

    play(tmp_path, act)


REFUSALS = [
    RateLimited("m", retry_after_s=7, limit=LimitFact("tokens_per_minute", 5, 6, "key"), rate=RATE),
    QueueFull("m", retry_after_s=1, limit=LimitFact("queue_depth", 5, 6, "server")),
    NoCapacity("m", retry_after_s=3, limit=LimitFact("queue_deadline_ms", 5, 6, "server")),
    ServerDraining("m", retry_after_s=5),
    EngineUnavailable("m", retry_after_s=2),
    DeadlineUnreachable("m", param="deadline_ms", limit=LimitFact("first_token_deadline_ms", 5, 6)),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_a_refusal_crosses_with_all_its_facts(tmp_path: Path, error: ServeError) -> None:
    async def act(scene: Scene) -> None:
        waiter = await scene.enter("a")
        scene.gate.waiting["a"].refuse(error)
        await until(lambda: waiter.told)
        (told,) = waiter.told
        assert isinstance(told, ServeError)
        assert type(told) is type(error)
        assert describe_refusal(told) == describe_refusal(error)
        scene.remote.leave("a", 0)
        await asyncio.sleep(0.01)
        assert scene.gate.log == [("enter", "a")]  # who was refused has nothing to give back

    play(tmp_path, act)


def test_an_unknown_error_crosses_as_a_fault_of_ours() -> None:
    assert make_error(describe_refusal(ServeError("m"))).__class__.__name__ == "InternalError"


def test_an_answer_that_crosses_a_leave_reaches_nobody(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        waiter = await scene.enter("a")
        scene.remote.leave("a", 0)
        scene.gate.waiting["a"].admit(None)
        await until(lambda: ("leave 0", "a") in scene.gate.log)
        other = await scene.enter("b")
        scene.gate.waiting["b"].admit(None)
        await until(lambda: other.told)
        assert waiter.told == []

    play(tmp_path, act)


def test_what_a_process_held_comes_back_when_it_is_gone(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.enter("a")
        scene.gate.waiting["a"].admit(None)
        await scene.enter("b")
        await scene.remote.claim_slot(LIMITED)
        assert (scene.server.num_held, scene.gate.num_slots) == (2, 1)
        await scene.remote.aclose()
        await until(lambda: scene.server.num_held == 0)
        assert {entry for entry in scene.gate.log if entry[0] == "leave 0"} == {("leave 0", "a"), ("leave 0", "b")}
        assert scene.gate.num_slots == 0

    play(tmp_path, act)


def test_without_a_gate_requests_are_refused_and_it_is_found_again(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        waiting = await scene.enter("a")
        await scene.server.aclose()
        await until(lambda: not scene.remote.is_connected)
        late = Waiter()
        scene.remote.enter(ticket("b"), late)
        assert [type(told) for told in (*waiting.told, *late.told)] == [EngineUnavailable] * 2
        with pytest.raises(EngineUnavailable):
            await scene.remote.claim_slot(LIMITED)
        scene.path.unlink(missing_ok=True)
        again = GateServer(scene.gate, scene.reports.append)
        await again.start(scene.path)
        await until(lambda: scene.remote.is_connected)
        await scene.enter("c")
        await again.aclose()

    play(tmp_path, act)


def test_a_draining_process_asks_nobody(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.drain.apply(DrainEvent.BEGIN)
        waiter = Waiter()
        scene.remote.enter(ticket("a"), waiter)
        assert [type(told) for told in waiter.told] == [ServerDraining]
        assert scene.gate.log == []

    play(tmp_path, act)


def test_slots_are_counted_over_all_processes_and_given_back(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        other = RemoteGate(scene.path, Drain())
        other.start()
        await until(lambda: other.is_connected)
        slot = await scene.remote.claim_slot(LIMITED)
        with pytest.raises(RateLimited) as refused:
            await other.claim_slot(LIMITED)
        assert (refused.value.retry_after_s, refused.value.limit) == (2, LimitFact("concurrency", 1, 2, "key"))
        slot.release()
        slot.release()
        await until(lambda: scene.gate.num_slots == 0)
        (await other.claim_slot(LIMITED)).release()
        (await scene.remote.claim_slot(ANONYMOUS)).release()
        await other.aclose()

    play(tmp_path, act)


def test_a_claim_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.gate.claims.clear()
        claim = asyncio.create_task(scene.remote.claim_slot(LIMITED))
        await asyncio.sleep(0.01)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        scene.gate.claims.set()
        slot = await scene.remote.claim_slot(LIMITED)
        assert scene.gate.num_slots == 1
        slot.release()

    play(tmp_path, act)


GARBAGE = [b"\xff\xff\xff\xff", frame(b"\xc1"), frame(b"\x90"), frame(b"\x92\x07\x01")]


@pytest.mark.parametrize("data", GARBAGE)
def test_garbage_ends_that_connection_alone(tmp_path: Path, data: bytes) -> None:
    async def act(scene: Scene) -> None:
        reader, writer = await asyncio.open_unix_connection(str(scene.path))
        writer.write(data)
        assert await reader.read() == b""
        writer.close()
        assert len(scene.reports) == 1
        waiter = await scene.enter("a")
        scene.gate.waiting["a"].admit(None)
        await until(lambda: waiter.told)

    play(tmp_path, act)
