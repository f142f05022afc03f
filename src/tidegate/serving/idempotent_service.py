"""IdempotentService: a service that carries out each named operation once, where it asks the engine (CONTRACT.md 10).

Wraps another service. A request with `Idempotency-Key` is looked up before its body is prepared: it runs, is told that
another one runs, or gets the recorded answer without the wrapped service hearing of it. Requests without the header
pass.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tidegate.clock import Clock
from tidegate.contract import headers
from tidegate.contract.error_table import row_of
from tidegate.contract.quote import quote
from tidegate.errors import (
    IdempotencyKeyInUse,
    IdempotencyKeyReuse,
    InternalError,
    InvalidValue,
    LimitFact,
    NoCapacity,
    ServeError,
    UnsupportedParameter,
)
from tidegate.lifecycle.fingerprint import MAX_KEY_CHARACTERS, operation_id, read_key
from tidegate.lifecycle.ledger_port import Fresh, InFlight, LedgerFull, LedgerUnavailable, Mismatch, Replay
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.recorded_answer import RecordedAnswer
from tidegate.observability.observer import Observer, RequestEnded
from tidegate.serving.answer_recorder import AnswerRecorder, OpenClaim
from tidegate.serving.call import Call
from tidegate.serving.gate import KeySlot
from tidegate.serving.recording_stream import RecordingStream
from tidegate.serving.replay_stream import ReplayStream
from tidegate.serving.reply import Headers, Reply, WholeReply

KEPT_HEADERS = frozenset(
    {headers.CONTENT_TYPE.lower(), headers.SERVED_REVISION.lower(), headers.IGNORED_FIELDS.lower()}
)
"""Those that say how the answer came about. The others belong to one exchange."""
_METHOD = "POST"
_PARAM = headers.IN_IDEMPOTENCY_KEY


class Wrapped(Protocol):
    """The service that does the work: the HTTP layer's `Service`."""

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot: ...
    async def chat(self, call: Call) -> Reply: ...
    async def completion(self, call: Call) -> Reply: ...
    async def embeddings(self, call: Call) -> Reply: ...
    async def score(self, call: Call) -> Reply: ...
    async def rerank(self, call: Call) -> Reply: ...
    async def classify(self, call: Call) -> Reply: ...
    async def tokenize(self, call: Call) -> Reply: ...
    async def detokenize(self, call: Call) -> Reply: ...
    def models(self, principal: Principal) -> WholeReply: ...
    def model(self, model_id: str, principal: Principal) -> WholeReply: ...
    def contract(self, principal: Principal) -> WholeReply: ...
    def is_ready(self) -> bool: ...


class IdempotentService:
    """Has the shape of what it wraps. Without a `recorder` requests with the header are refused."""

    def __init__(
        self, inner: Wrapped, recorder: AnswerRecorder | None, rules: LedgerRules, observer: Observer, clock: Clock
    ) -> None:
        self._inner = inner
        self._recorder = recorder
        self._rules = rules
        self._observer = observer
        self._clock = clock

    def describe(self) -> LedgerRules:
        """Returns what callers are told about the ledger."""
        return self._rules

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot:
        """See the HTTP layer's `Service`. A request that is answered from the record has its slot too."""
        return await self._inner.claim_slot(principal, route)

    async def chat(self, call: Call) -> Reply:
        return await self._once(call, self._inner.chat)

    async def completion(self, call: Call) -> Reply:
        return await self._once(call, self._inner.completion)

    async def embeddings(self, call: Call) -> Reply:
        return await self._once(call, self._inner.embeddings)

    async def score(self, call: Call) -> Reply:
        return await self._once(call, self._inner.score)

    async def rerank(self, call: Call) -> Reply:
        return await self._once(call, self._inner.rerank)

    async def classify(self, call: Call) -> Reply:
        return await self._once(call, self._inner.classify)

    async def tokenize(self, call: Call) -> Reply:
        return await self._inner.tokenize(call)

    async def detokenize(self, call: Call) -> Reply:
        return await self._inner.detokenize(call)

    def models(self, principal: Principal) -> WholeReply:
        return self._inner.models(principal)

    def model(self, model_id: str, principal: Principal) -> WholeReply:
        """Raises ModelNotFound and ModelNotAllowed."""
        return self._inner.model(model_id, principal)

    def contract(self, principal: Principal) -> WholeReply:
        return self._inner.contract(principal)

    def is_ready(self) -> bool:
        return self._inner.is_ready()

    async def _once(self, call: Call, answer: Callable[[Call], Awaitable[Reply]]) -> Reply:
        given = call.headers.get(headers.IN_IDEMPOTENCY_KEY)
        if given is None:
            return await answer(call)
        found = await self._look_up(call, given)
        if found is None:
            return await answer(call)
        if not isinstance(found, OpenClaim):
            return found
        try:
            reply = await answer(call)
        except ServeError:
            await found.release()  # before the caller hears of it, so that a retry at once runs
            raise
        except BaseException:
            found.release_soon()
            raise
        kept = tuple(pair for pair in reply.headers if pair[0].lower() in KEPT_HEADERS)
        if isinstance(reply, WholeReply):
            await found.record(RecordedAnswer(reply.status, kept, is_stream=False, body=reply.body))
            return reply
        return RecordingStream(reply, found, kept)

    async def _look_up(self, call: Call, given: str) -> OpenClaim | Reply | None:
        """Returns the claim of a request that runs, the recorded answer, or None for a body that is not JSON.

        What ends here is counted here.
        """
        try:
            return await self._claim(call, given)
        except Exception as error:
            row = row_of(error)
            self._observer.request_received(call.route, call.num_retries)
            self._observer.request_refused(call.route, row.status, row.code)
            raise
        except BaseException:
            self._observer.request_received(call.route, call.num_retries)
            self._tell_end(call, "client_gone", None)
            raise

    async def _claim(self, call: Call, given: str) -> OpenClaim | Reply | None:
        recorder = self._recorder
        if recorder is None:
            raise UnsupportedParameter(f"{_PARAM}: this server keeps no record of idempotency keys", param=_PARAM)
        key = read_key(given)
        if key is None:
            raise InvalidValue(
                f"{_PARAM}: {quote(given)} is not one key of 1 to {MAX_KEY_CHARACTERS} visible ASCII characters",
                param=_PARAM,
            )
        request = await recorder.fingerprint(_METHOD, call.route, call.body)
        if request is None:
            return None
        try:
            found = await recorder.claim(operation_id(call.principal.key_id, key), request)
        except LedgerFull as full:
            self._observer.claim_answered("full")
            limit = LimitFact("idempotency_entries", self._rules.max_entries, full.num_entries + 1, "server")
            raise NoCapacity("Too many requests with idempotency keys are running.", limit=limit) from None
        except LedgerUnavailable:
            self._observer.claim_answered("unavailable")
            raise NoCapacity("The record of idempotency keys cannot be reached; try again soon.") from None
        match found:
            case Fresh(claim):
                self._observer.claim_answered("fresh")
                return OpenClaim(recorder, claim)
            case Replay(stored):
                reply = await self._replay(call, stored, recorder)
                self._observer.claim_answered("replayed")
                return reply
            case InFlight():
                self._observer.claim_answered("in_use")
                raise IdempotencyKeyInUse("A request with this idempotency key is still running.")
            case Mismatch():
                self._observer.claim_answered("reused")
                raise IdempotencyKeyReuse("This idempotency key was used for another request.", param=_PARAM)

    async def _replay(self, call: Call, stored: bytes, recorder: AnswerRecorder) -> Reply:
        try:
            answer = await recorder.unpack(stored)
        except ValueError as error:
            raise InternalError(f"a recorded answer cannot be read: {error}") from error
        lines: Headers = [*answer.headers, (headers.IDEMPOTENT_REPLAYED, "true")]
        self._observer.request_received(call.route, call.num_retries)
        if not answer.is_stream:
            self._tell_end(call, "replayed", answer.status)
            return WholeReply(answer.body, answer.status, lines)

        def close(_cause: str) -> None:
            self._tell_end(call, "replayed", answer.status, is_stream=True)

        return ReplayStream(answer.body, lines, close)

    def _tell_end(self, call: Call, outcome: str, status: int | None, *, is_stream: bool = False) -> None:
        self._observer.request_ended(
            RequestEnded(
                request_id="",
                wire_id=call.wire_id,
                route=call.route,
                model=None,
                outcome=outcome,
                status=status,
                duration_s=self._clock.now() - call.received_at,
                is_stream=is_stream,
                key_name=call.principal.log_name,
                num_retries=call.num_retries,
            )
        )
