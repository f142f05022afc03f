"""GateServer: lets other server processes of this machine use the one gate, over a Unix socket.

Quotas, queue and permits have one owner however many processes serve. Each connection is one process; what it holds
when the connection ends is given back, so a process that dies takes nothing with it.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from tidegate.engine.framing import FrameDecoder, FramingError
from tidegate.errors import RateFacts, ServeError
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.lifecycle.principal import Principal
from tidegate.serving.gate import Gate, KeySlot
from tidegate.serving.gate_messages import (
    MAX_FRAME_BYTES,
    Admitted,
    Answer,
    Blamed,
    ClaimSlot,
    Enter,
    Leave,
    Question,
    Refused,
    ReleaseSlot,
    SlotGiven,
    SlotRefused,
    Started,
    decode_question,
    describe_refusal,
    encode_message,
)

MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""What may wait for a process that does not read its answers; above it the connection is dropped."""


class GateServer:
    """`start`, in the end `aclose`. `report` hears of connections that were dropped, and why. `poison` is what is held
    against requests, by the first name of their model: what one process tells is told to all others, and to new ones.
    """

    def __init__(
        self, gate: Gate, report: Callable[[str], None], poison: Mapping[str, PoisonWatch] | None = None
    ) -> None:
        self._gate = gate
        self._poison = poison or {}
        self._report = report
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    @property
    def num_held(self) -> int:
        """Tickets that connected processes hold."""
        return sum(len(connection.tickets) for connection in self._connections)

    async def start(self, path: Path) -> None:
        """Listens at `path`. Raises OSError."""
        self._server = await asyncio.get_running_loop().create_unix_server(self._connect, str(path))

    async def aclose(self) -> None:
        """Stops listening and hangs up; what was held is given back. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.end()

    def _connect(self) -> "_Connection":
        connection = _Connection(self._gate, self._report, self)
        self._connections.add(connection)
        return connection

    def known_blames(self) -> list[Blamed]:
        """Returns what a new process has to hear."""
        return [Blamed(model, blame) for model, watch in self._poison.items() for blame in watch.blames()]

    def spread(self, blamed: Blamed, teller: "_Connection") -> None:
        """Keeps what one process holds against a request, and tells the others."""
        watch = self._poison.get(blamed.model)
        if watch is None:
            return
        watch.take(blamed.blame)
        for connection in self._connections:
            if connection is not teller:
                connection.answer(blamed)

    def forget(self, connection: "_Connection") -> None:
        """The connection is over."""
        self._connections.discard(connection)


class _Connection(asyncio.Protocol):
    """One server process."""

    def __init__(self, gate: Gate, report: Callable[[str], None], server: GateServer) -> None:
        self.tickets: set[str] = set()
        self._gate = gate
        self._report = report
        self._server = server
        self._decoder = FrameDecoder(MAX_FRAME_BYTES)
        self._transport: asyncio.Transport | None = None
        self._slots: dict[int, KeySlot] = {}
        self._claims: dict[int, asyncio.Task[None]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        for blamed in self._server.known_blames():
            self.answer(blamed)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._decoder.feed(data):
                self._take(decode_question(payload))
        except FramingError as error:
            self._drop(str(error))

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self.end()

    def answer(self, message: Answer) -> None:
        """Sends an answer, unless the connection is over."""
        if self._transport is None:
            return
        self._transport.write(encode_message(message))
        if self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._drop("it does not read its answers")

    def end(self) -> None:
        """Gives back everything that the process held. Idempotent."""
        self._server.forget(self)
        for task in self._claims.values():
            task.cancel()
        tickets, self.tickets = self.tickets, set()
        for ticket_id in tickets:
            self._gate.leave(ticket_id, 0)
        slots, self._slots = self._slots, {}
        for slot in slots.values():
            slot.release()
        if self._transport is not None:
            self._transport.abort()

    def _drop(self, reason: str) -> None:
        self._report(f"a server process was cut off from the gate: {reason}")
        self.end()

    def _take(self, question: Question) -> None:
        match question:
            case Enter(ticket):
                if ticket.ticket_id in self.tickets:
                    raise FramingError(f"ticket {ticket.ticket_id} entered twice")
                self.tickets.add(ticket.ticket_id)
                self._gate.enter(ticket, _RemoteEntrant(self, ticket.ticket_id))
            case Started(ticket_id):
                if ticket_id in self.tickets:
                    self._gate.note_started(ticket_id)
            case Leave(ticket_id, num_tokens):
                if ticket_id in self.tickets:
                    self.tickets.discard(ticket_id)
                    self._gate.leave(ticket_id, num_tokens)
            case Blamed():
                self._server.spread(question, self)
            case _:
                self._take_slot(question)

    def _take_slot(self, question: ClaimSlot | ReleaseSlot) -> None:
        match question:
            case ClaimSlot():
                self._claims[question.number] = asyncio.create_task(self._claim(question))
            case ReleaseSlot(number):
                claim = self._claims.pop(number, None)
                if claim is not None:
                    claim.cancel()
                slot = self._slots.pop(number, None)
                if slot is not None:
                    slot.release()

    async def _claim(self, question: ClaimSlot) -> None:
        try:
            slot = await self._gate.claim_slot(Principal(question.key_id, "", quotas=question.quotas))
        except ServeError as error:
            self.answer(SlotRefused(question.number, describe_refusal(error)))
            return
        finally:
            self._claims.pop(question.number, None)
        if self._transport is None:
            slot.release()
            return
        self._slots[question.number] = slot
        self.answer(SlotGiven(question.number))


class _RemoteEntrant:
    """Implements `Entrant` for a request of another process."""

    def __init__(self, connection: _Connection, ticket_id: str) -> None:
        self._connection = connection
        self._ticket_id = ticket_id

    def admit(self, rate: RateFacts | None) -> None:
        """See `Entrant.admit`."""
        self._connection.answer(Admitted(self._ticket_id, rate))

    def refuse(self, error: ServeError) -> None:
        """See `Entrant.refuse`. Who was refused holds nothing."""
        self._connection.tickets.discard(self._ticket_id)
        self._connection.answer(Refused(self._ticket_id, describe_refusal(error)))
