"""Service: the entry points of the public listener, and the registry of live requests.

A straight line for each call: decode, prepare, drive, reply. Preparing large bodies (templates, tokenization) happens
on a thread, so that a ten-megabyte prompt delays nobody's stream. A cancelled call is a client that has gone.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from tidegate.contract import headers
from tidegate.contract.codec import encode_json
from tidegate.contract.error_table import row_of
from tidegate.contract.model_list import Model, ModelList
from tidegate.contract.rate_headers import rate_headers
from tidegate.contract.self_description import SelfDescription
from tidegate.contract.unknown_fields import UnknownFieldPolicy, ignored_fields_header
from tidegate.engine.port import Engine
from tidegate.errors import EngineUnavailable, InternalError, ServeError
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.states import Reply as ReplyState
from tidegate.serving.call import Call
from tidegate.serving.chat_writer import ChatAssembler, ChatWriter
from tidegate.serving.chunk_head import ChunkHead, ReplyIdentity
from tidegate.serving.completion_writer import CompletionAssembler, CompletionWriter
from tidegate.serving.describe import describe_contract
from tidegate.serving.driven_stream import DrivenStream, StreamWriter
from tidegate.serving.driver import RequestDriver
from tidegate.serving.ending import describe_gone
from tidegate.serving.gate import KeySlot
from tidegate.serving.grammar_check import GrammarCheck
from tidegate.serving.model_tasks import CHAT, REASONS, unserved_reason
from tidegate.serving.prepare import NO_MAXIMUM, MaxDeadlines, Preparation
from tidegate.serving.prepare_chat import prepare_chat
from tidegate.serving.prepare_classify import prepare_classify
from tidegate.serving.prepare_completion import prepare_completion
from tidegate.serving.prepare_embeddings import prepare_embeddings
from tidegate.serving.prepare_score import prepare_rerank, prepare_score
from tidegate.serving.prepared import PreparedCall, ReadAssembler
from tidegate.serving.prompt_scores import prompt_logprobs
from tidegate.serving.reply import Headers, Reply, WholeReply
from tidegate.serving.served_model import ServedModel
from tidegate.serving.server_facts import EngineFact, ServerFacts
from tidegate.serving.surroundings import Surroundings
from tidegate.serving.token_routes import detokenize, tokenize

_T = TypeVar("_T")

INLINE_BODY_BYTES = 16 * 1024
"""Bodies up to this size are prepared on the event loop: a hand-over costs more than the work."""
INLINE_NUMBERS = 64 * 1024
"""The same for the numbers of an answer."""
Assembler = ChatAssembler | CompletionAssembler | ReadAssembler


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`status_hold_s`: how long a stream's status waits for the first output."""

    status_hold_s: float = 10.0
    unknown_fields: UnknownFieldPolicy = UnknownFieldPolicy.REPORT
    facts: ServerFacts = field(default_factory=ServerFacts)
    max_deadlines: MaxDeadlines = NO_MAXIMUM
    list_engines: Callable[[], Sequence[EngineFact]] = tuple
    """The engines of this model, where there are several."""


class Service:
    """Answers calls for one served model."""

    def __init__(
        self,
        model: ServedModel,
        surroundings: Surroundings,
        settings: ServiceSettings,
        entropy: Callable[[int], bytes],
        grammars: GrammarCheck | None = None,
    ) -> None:
        """`grammars` tells whether a constraint can be enforced; None where none is served."""
        self.served = model
        self.live: dict[str, RequestDriver] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._around = surroundings
        self._settings = settings
        self._entropy = entropy
        self.grammars = grammars
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prepare")

    @property
    def engine(self) -> Engine:
        return self._around.engine

    @property
    def services(self) -> tuple["Service", ...]:
        """One service for each model; here is only one."""
        return (self,)

    def close(self) -> None:
        """Gives back the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def is_accepting(self) -> bool:
        """Whether the server is not draining."""
        return self._around.drain.is_accepting

    def is_ready(self) -> bool:
        return self.is_accepting and self.engine.statistics().is_ready

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot:
        """See `http.service_port.Service.claim_slot`. A refusal is counted here."""
        try:
            return await self._around.gate.claim_slot(principal)
        except ServeError as error:
            self._around.observer.request_received(route)
            row = row_of(error)
            self._around.observer.request_refused(route, row.status, row.code)
            raise

    async def chat(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_chat))

    async def completion(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_completion))

    async def embeddings(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_embeddings))

    async def score(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_score))

    async def rerank(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_rerank))

    async def classify(self, call: Call) -> Reply:
        return await self._reply(await self._prepare(call, prepare_classify))

    async def tokenize(self, call: Call) -> Reply:
        return WholeReply(await self._prepare(call, tokenize), headers=self._headers(()))

    async def detokenize(self, call: Call) -> Reply:
        return WholeReply(await self._prepare(call, detokenize), headers=self._headers(()))

    def models(self, principal: Principal) -> WholeReply:
        return WholeReply(encode_json(ModelList(data=self.cards(principal))))

    def cards(self, principal: Principal) -> list[Model]:
        """Returns the names that a caller may use, with what stands behind them."""
        return [self._card(name) for name in self.served.names_for(principal)]

    def model(self, model_id: str, principal: Principal) -> WholeReply:
        """Raises ModelNotFound and ModelNotAllowed."""
        return WholeReply(encode_json(self._card(self.served.check_name(model_id, principal))))

    def contract(self, principal: Principal) -> WholeReply:
        """Says what this server promises to `principal`."""
        return WholeReply(encode_json(self.describe(principal)), headers=self._headers(()))

    def describe(self, principal: Principal) -> SelfDescription:
        """Returns what this server promises to `principal`, for this model."""
        info = self.engine.statistics().model
        settings = self._settings
        return describe_contract(
            self.served, info, settings.facts, settings.unknown_fields, principal, settings.list_engines()
        )

    def expire_all(self, error: ServeError) -> None:
        """Ends every live request with `error`, because the server shuts down."""
        for driver in list(self.live.values()):
            driver.expire(error, cause="shutdown")

    async def wait_empty(self) -> None:
        """Waits until no request is live."""
        await self._is_empty.wait()

    def _card(self, name: str) -> Model:
        info = self.engine.statistics().model
        if info is None:
            return Model(id=name, created=self.served.created, owned_by="tidegate")
        return Model(
            id=name,
            created=self.served.created,
            owned_by="tidegate",
            max_model_len=info.max_model_len,
            endpoints=[path for path in REASONS if unserved_reason(path, info) is None],
        )

    async def _prepare(self, call: Call, prepare: Callable[[Call, Preparation], _T]) -> _T:
        """Runs `prepare` here or on a thread, by the body's size, and asks whether its constraint can be enforced.

        A call that ends in here is counted here.
        """
        observer = self._around.observer
        observer.request_received(call.route, call.num_retries)
        try:
            preparation = self._preparation()
            if len(call.body) <= INLINE_BODY_BYTES:
                prepared = prepare(call, preparation)
            else:
                loop = asyncio.get_running_loop()
                prepared = await loop.run_in_executor(self._threads, prepare, call, preparation)
            if isinstance(prepared, PreparedCall):
                await self._check_constraint(prepared)
            return prepared
        except asyncio.CancelledError:
            observer.request_ended(describe_gone(call, self._around.clock.now()))
            raise
        except Exception as error:
            row = row_of(error)
            observer.request_refused(call.route, row.status, row.code)
            raise

    async def _check_constraint(self, prepared: PreparedCall) -> None:
        """Raises InvalidRequest for a constraint that cannot be enforced, NoCapacity when nobody can tell now, and
        DeadlineExceeded when the caller's time is over before that is known.
        """
        constraint, now = prepared.constraint, self._around.clock.now
        if constraint is None or self.grammars is None:
            return
        deadline = prepared.context.deadlines.next(has_first_token=False)
        try:
            async with asyncio.timeout(None if deadline is None else deadline.at - now()):
                refusal = await self.grammars.refusal_of(constraint.spec)
        except TimeoutError:
            if deadline is None:
                raise
            raise deadline.error(now()) from None
        if refusal is not None:
            raise constraint.error(refusal)

    def _preparation(self) -> Preparation:
        status = self.engine.statistics()
        info = status.model
        if info is None:
            raise EngineUnavailable("The engine is starting; try again soon.", retry_after_s=status.retry_after_s)
        settings = self._settings
        return Preparation(
            self.served, info, settings.unknown_fields, self._around.clock, self._entropy, settings.max_deadlines
        )

    async def _reply(self, prepared: PreparedCall) -> Reply:
        """Drives one call. Whatever goes wrong in here ends the request: nothing is left running."""
        driver = RequestDriver(prepared, self._around, self._forget)
        self.live[prepared.context.request_id] = driver
        self._is_empty.clear()
        try:
            driver.start()
            return await (self._stream(driver) if prepared.is_stream else self._whole(driver))
        except asyncio.CancelledError:
            driver.disconnect("client_gone")
            raise
        except ServeError:
            raise
        except Exception:
            driver.give_up(InternalError("An internal error occurred."))
            raise

    async def _stream(self, driver: RequestDriver) -> Reply:
        await driver.wait_status(self._settings.status_hold_s)
        if driver.machine.reply is ReplyState.UNSENT:
            self._raise_error(driver)
        return DrivenStream(driver, self._writer(driver), self._driven_headers(driver))

    async def _whole(self, driver: RequestDriver) -> Reply:
        assembler = self._assembler(driver)
        while (items := await driver.take()) is not None:
            for index, event in items:
                assembler.feed(index, event)
        self._raise_error(driver)
        body = await self._body(driver, assembler)
        driver.note_sent(Event.SEND_WHOLE, 200)
        return WholeReply(body, headers=self._driven_headers(driver))

    async def _body(self, driver: RequestDriver, assembler: Assembler) -> bytes:
        """Writes a whole answer; on a thread where that takes long, so that it delays nobody's stream."""
        if isinstance(assembler, ChatAssembler | CompletionAssembler):
            self._add_prompt_members(driver, assembler)
        elif assembler.num_numbers > INLINE_NUMBERS:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, assembler.result, driver.counts)
        return assembler.result(driver.counts)

    def _raise_error(self, driver: RequestDriver) -> None:
        if driver.error is not None:
            driver.note_sent(Event.SEND_ERROR, row_of(driver.error).status)
            raise driver.error

    def _forget(self, driver: RequestDriver) -> None:
        self.live.pop(driver.call.context.request_id, None)
        if not self.live:
            self._is_empty.set()

    def _headers(self, ignored_fields: tuple[str, ...], info: ModelInfo | None = None) -> Headers:
        info = self.engine.statistics().model if info is None else info
        lines = [(headers.SERVED_REVISION, self.served.revision(info))] if info is not None else []
        if ignored_fields:
            lines.append((headers.IGNORED_FIELDS, ignored_fields_header(list(ignored_fields))))
        return lines

    def _driven_headers(self, driver: RequestDriver) -> Headers:
        return self._headers(driver.call.ignored_fields, driver.lane.model) + rate_headers(driver.rate)

    def _identity(self, driver: RequestDriver) -> ReplyIdentity:
        """The fingerprint is that of the engine that answers; before there is one, of what was prepared for."""
        call, info = driver.call, driver.lane.model
        fingerprint = call.fingerprint if info is None else self.served.revision(info)
        return ReplyIdentity(call.context.request_id, call.context.created, call.model, fingerprint)

    def _writer(self, driver: RequestDriver) -> StreamWriter:
        call = driver.call
        is_chat = call.context.route == CHAT
        head = ChunkHead(
            self._identity(driver),
            "chat.completion.chunk" if is_chat else "text_completion",
            lambda: driver.counts,
            include_usage=call.include_usage,
            continuous_usage=call.continuous_usage,
        )
        if is_chat:
            prompt_ids = call.prompts[0].token_ids if call.want_token_ids else None
            field = self.served.formats.reasoning_field
            return ChatWriter(head, call.num_choices, prompt_ids, is_legacy=call.is_legacy, reasoning_field=field)
        token_ids = [prompt.token_ids for prompt in call.prompts for _ in range(call.num_choices)]
        return CompletionWriter(head, call.num_top, token_ids if call.want_token_ids else None)

    def _assembler(self, driver: RequestDriver) -> Assembler:
        call = driver.call
        if call.make_assembler is not None:
            return call.make_assembler(self._identity(driver))
        if call.context.route == CHAT:
            return ChatAssembler(
                self._identity(driver),
                call.num_choices,
                want_logprobs=call.num_top is not None,
                is_legacy=call.is_legacy,
                reasoning_field=self.served.formats.reasoning_field,
            )
        return CompletionAssembler(self._identity(driver), call.num_choices * len(call.prompts), call.num_top)

    def _add_prompt_members(self, driver: RequestDriver, assembler: ChatAssembler | CompletionAssembler) -> None:
        """The extensions that concern prompts: their token ids and their log-probabilities."""
        call = driver.call
        for i, prompt in enumerate(call.prompts):
            scores = None
            if call.want_prompt_logprobs:
                scores = prompt_logprobs(prompt.plan.vocabulary, prompt.token_ids, driver.prompt_logprobs(i))
            for index in range(i * call.num_choices, (i + 1) * call.num_choices):
                assembler.add_prompt(index, prompt.token_ids if call.want_token_ids else None, scores)
