"""An idempotent service around a worker that does as the test says, over a ledger in memory."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.lifecycle.principal import Principal
from tidegate.observability.observer import NullObserver, RequestEnded
from tidegate.serving.answer_recorder import AnswerRecorder
from tidegate.serving.call import Call
from tidegate.serving.idempotent_service import IdempotentService
from tidegate.serving.reply import Headers, Reply, WholeReply
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.memory_ledger import MemoryLedger, MemoryStore

RULES = LedgerRules("sqlite", 100, 3, 1 << 20, 4096)
REVISION = ("Tidegate-Served-Revision", "rev-1")
KEPT = [REVISION, ("Tidegate-Ignored-Fields", "x")]
DONE = b"data: [DONE]\n\n"
BODY = b'{"model":"m","prompt":"a"}'


class Facts(NullObserver):
    def __init__(self) -> None:
        self.received: list[str] = []
        self.refused: list[str] = []
        self.ended: list[RequestEnded] = []
        self.answered: list[str] = []
        self.claim_ends: list[str] = []

    def request_received(self, route: str, num_retries: int = 0) -> None:
        self.received.append(route)

    def request_refused(self, route: str, status: int, code: str) -> None:
        self.refused.append(code)

    def request_ended(self, facts: RequestEnded) -> None:
        self.ended.append(facts)

    def claim_answered(self, outcome: str) -> None:
        self.answered.append(outcome)

    def claim_ended(self, outcome: str) -> None:
        self.claim_ends.append(outcome)


class GivenStream:
    """A stream of given pieces; an exception among them is raised, an event waited for."""

    def __init__(self, *parts: bytes | Exception | asyncio.Event) -> None:
        self.headers: Headers = [*KEPT, ("X-RateLimit-Remaining-Requests", "1")]
        self.causes: list[str] = []
        self.num_nudges = 0
        self._parts = list(parts)

    async def take(self) -> bytes | None:
        while self._parts:
            part = self._parts[0]
            if isinstance(part, asyncio.Event):
                await part.wait()
            self._parts.pop(0)
            if isinstance(part, Exception):
                raise part
            if isinstance(part, bytes):
                return part
        return None

    def nudge(self) -> None:
        self.num_nudges += 1

    def close(self, cause: str) -> None:
        self.causes.append(cause)


class Worker:
    """What is wrapped: answers as the test says, and counts."""

    def __init__(self) -> None:
        self.num_runs = 0
        self.answer: Callable[[], Coroutine[Any, Any, Reply]] = self._say

    async def _say(self) -> Reply:
        return WholeReply(b'{"run":%d}' % self.num_runs, headers=[*KEPT, ("X-RateLimit-Remaining-Requests", "1")])

    async def chat(self, call: Call) -> Reply:
        self.num_runs += 1
        return await self.answer()

    completion = tokenize = detokenize = chat

    def models(self) -> WholeReply:
        return WholeReply(b"models")

    def model(self, model_id: str) -> WholeReply:
        return WholeReply(model_id.encode())

    def contract(self, principal: Principal) -> WholeReply:
        return WholeReply(principal.key_id.encode())

    def is_ready(self) -> bool:
        return True

    def fail(self, error: Exception) -> None:
        async def answer() -> Reply:
            raise error

        self.answer = answer

    def stream(self, *parts: bytes | Exception | asyncio.Event) -> GivenStream:
        stream = GivenStream(*parts)

        async def answer() -> Reply:
            return stream

        self.answer = answer
        return stream


@dataclass
class Site:
    worker: Worker = field(default_factory=Worker)
    facts: Facts = field(default_factory=Facts)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.store = MemoryStore(LedgerLimits(100, 3, 1 << 20), self.clock.wall)
        self.ledger = MemoryLedger(self.store)
        self.recorder = AnswerRecorder(self.ledger, self.facts, RULES.max_answer_bytes)
        self.service = IdempotentService(self.worker, self.recorder, RULES, self.facts, self.clock)

    async def ask(self, key: str | None = "k", body: bytes = BODY, *, caller: str = "", route: str = "chat") -> Reply:
        headers = {} if key is None else {"idempotency-key": key}
        call = Call("/v1/" + route, "wire", 0.0, body, headers, Principal(caller, caller))
        return await (self.service.chat(call) if route == "chat" else self.service.completion(call))

    async def whole(self, key: str | None = "k", body: bytes = BODY, **given: Any) -> WholeReply:
        reply = await self.ask(key, body, **given)
        assert isinstance(reply, WholeReply)
        return reply

    async def rest(self) -> None:
        """Lets what goes on in the background end."""
        while self.recorder._tasks:
            await asyncio.sleep(0)


def run_site(test: Callable[[Site], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        site = Site()
        try:
            await test(site)
        finally:
            await site.recorder.aclose()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def is_replay(reply: Reply) -> bool:
    return ("Idempotent-Replayed", "true") in reply.headers


async def drink(reply: Reply, cause: str = "done") -> bytes:
    assert not isinstance(reply, WholeReply)
    data = b""
    while (piece := await reply.take()) is not None:
        data += piece
    reply.close(cause)
    return data
