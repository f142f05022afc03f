"""RemoteGate: the `Gate` of a server process that shares it with others; the one that decides is asked over a socket.

While nobody answers at the other end, requests are refused as if the engine were away. Permits that were given stand:
their requests run on.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from tidegate.engine.framing import FrameDecoder, FramingError
from tidegate.errors import EngineUnavailable, InternalError, RateFacts, ServeError, ServerDraining
from tidegate.lasting_task import end_task, start_lasting
from tidegate.lifecycle.admission import RETRY_AFTER_DRAIN_S
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.poison import Blame, PoisonWatch
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot
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
    decode_answer,
    encode_message,
    make_error,
)

DIAL_INTERVAL_S = 0.05
RETRY_AFTER_AWAY_S = 1


class RemoteGate:
    """`start`, in the end `aclose`. Belongs to one event loop. `drain` is this process's own. `poison` is what is held
    against requests, by the first name of their model: it is told to the other processes, and theirs is taken in.
    """

    def __init__(self, path: Path, drain: Drain, poison: Mapping[str, PoisonWatch] | None = None) -> None:
        self._poison = poison or {}
        for model, watch in self._poison.items():
            watch.on_blame = partial(self._tell_blame, model)
        self._path = path
        self._drain = drain
        self._line: _Line | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[str, Entrant] = {}
        self._held: set[str] = set()
        self._slots: dict[int, asyncio.Future[KeySlot]] = {}
        self._num_slots = 0

    def start(self) -> None:
        """Begins to dial. Call once."""
        self._task = start_lasting(self._run(), "gate link")

    async def aclose(self) -> None:
        """Hangs up. Idempotent."""
        await end_task(self._task)
        if self._line is not None:
            self._line.close()

    @property
    def is_connected(self) -> bool:
        return self._line is not None

    async def claim_slot(self, principal: Principal) -> KeySlot:
        """See `Gate.claim_slot`. Raises EngineUnavailable when nobody answers."""
        if principal.quotas.concurrency is None:
            return _Slot(None, None)
        line = self._line
        if line is None:
            raise _away()
        self._num_slots += 1
        number = self._num_slots
        answer: asyncio.Future[KeySlot] = asyncio.get_running_loop().create_future()
        self._slots[number] = answer
        line.say(ClaimSlot(number, principal.key_id, principal.quotas))
        try:
            return await answer
        except asyncio.CancelledError:
            line.say(ReleaseSlot(number))
            raise
        finally:
            self._slots.pop(number, None)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """See `Gate.enter`."""
        if not self._drain.is_accepting:
            entrant.refuse(ServerDraining("The server is shutting down.", retry_after_s=RETRY_AFTER_DRAIN_S))
        elif self._line is None:
            entrant.refuse(_away())
        elif ticket.ticket_id in self._waiting or ticket.ticket_id in self._held:
            raise InternalError(f"ticket {ticket.ticket_id} entered twice")
        else:
            self._waiting[ticket.ticket_id] = entrant
            self._line.say(Enter(ticket))

    def note_started(self, ticket_id: str) -> None:
        """See `Gate.note_started`."""
        if ticket_id in self._held and self._line is not None:
            self._line.say(Started(ticket_id))

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        """See `Gate.leave`."""
        was_known = self._waiting.pop(ticket_id, None) is not None or ticket_id in self._held
        self._held.discard(ticket_id)
        if was_known and self._line is not None:
            self._line.say(Leave(ticket_id, num_tokens))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            line = _Line(self)
            try:
                await loop.create_unix_connection(lambda line=line: line, str(self._path))  # type: ignore[misc]
            except OSError:
                await asyncio.sleep(DIAL_INTERVAL_S)
                continue
            self._line = line
            await line.ended.wait()
            self._lose()

    def _lose(self) -> None:
        self._line = None
        self._held.clear()
        waiting, self._waiting = self._waiting, {}
        for entrant in waiting.values():
            entrant.refuse(_away())
        slots, self._slots = self._slots, {}
        for answer in slots.values():
            if not answer.done():
                answer.set_exception(_away())

    def _tell_blame(self, model: str, blame: Blame) -> None:
        if self._line is not None:
            self._line.say(Blamed(model, blame))

    def take(self, answer: Answer) -> None:
        """Carries out what the gate said. An answer that crossed a leave concerns nobody."""
        match answer:
            case Admitted(ticket_id, rate):
                self._admit(ticket_id, rate)
            case Refused(ticket_id, refusal):
                entrant = self._waiting.pop(ticket_id, None)
                if entrant is not None:
                    entrant.refuse(make_error(refusal))
            case SlotGiven(number):
                claim = self._slots.get(number)
                if claim is not None and not claim.done():
                    claim.set_result(_Slot(self._line, number))
            case SlotRefused(number, refusal):
                claim = self._slots.get(number)
                if claim is not None and not claim.done():
                    claim.set_exception(make_error(refusal))
            case Blamed(model, blame):
                if model in self._poison:
                    self._poison[model].take(blame)

    def _admit(self, ticket_id: str, rate: RateFacts | None) -> None:
        entrant = self._waiting.pop(ticket_id, None)
        if entrant is not None:
            self._held.add(ticket_id)
            entrant.admit(rate)


class _Slot:
    """Implements `KeySlot`. Without a number it stands for a key without a limit."""

    def __init__(self, line: "_Line | None", number: int | None) -> None:
        self._line = line
        self._number = number

    def release(self) -> None:
        """See `KeySlot.release`."""
        number, self._number = self._number, None
        if number is not None and self._line is not None:
            self._line.say(ReleaseSlot(number))


class _Line(asyncio.Protocol):
    """One connection to the gate."""

    def __init__(self, gate: RemoteGate) -> None:
        self.ended = asyncio.Event()
        self._gate = gate
        self._decoder = FrameDecoder(MAX_FRAME_BYTES)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._decoder.feed(data):
                self._gate.take(decode_answer(payload))
        except FramingError:
            self.close()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self.ended.set()

    def say(self, question: Question) -> None:
        """Sends a question, unless the connection is over: then the other end has forgotten us anyway."""
        if self._transport is not None:
            self._transport.write(encode_message(question))

    def close(self) -> None:
        """Hangs up."""
        if self._transport is not None:
            with contextlib.suppress(Exception):
                self._transport.abort()


def _away() -> ServeError:
    return EngineUnavailable("The server is starting.", retry_after_s=RETRY_AFTER_AWAY_S)
