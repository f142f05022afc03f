"""RequestDriver: one call to a generating route, from admission to its last byte.

Applies events to the request's machine and carries out the effects; counts choices and tokens; stops choices whose
text is complete; holds the engine while the reader is behind. Everything that decides runs here, on the producer's
side of the mailbox, when tokens arrive. Runs on the event loop only, and no method waits except `take` and
`wait_status`.

Does not know bytes, HTTP, or how prompts came to be.
"""

import asyncio
from collections.abc import Callable

from tidegate.contract.error_table import row_of
from tidegate.engine.lane import Lane
from tidegate.errors import (
    DeadlineExceeded,
    EngineLost,
    EngineRefused,
    EngineUnavailable,
    InternalError,
    RateFacts,
    ServeError,
)
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.lifecycle.effects import Effect
from tidegate.lifecycle.events import Event
from tidegate.lifecycle.machine import RequestMachine
from tidegate.lifecycle.states import Reply, Work
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.choice_reader import ChoiceReader
from tidegate.serving.deadline_timer import DeadlineTimer
from tidegate.serving.ending import Story, describe_end
from tidegate.serving.mailbox import IndexedEvent, Mailbox
from tidegate.serving.prepared import PreparedCall
from tidegate.serving.prompt_flow import PromptFlow, PromptSink
from tidegate.serving.surroundings import Surroundings
from tidegate.serving.traced_work import trace_work
from tidegate.serving.usage import TokenCounts

STREAM_STATUS = 200


class RequestDriver:
    """Create, `start`, then either `wait_status` and `take` (a stream) or only `take` (a whole reply)."""

    def __init__(
        self, call: PreparedCall, surroundings: Surroundings, on_settled: Callable[["RequestDriver"], None]
    ) -> None:
        self.call = call
        self.machine = RequestMachine()
        self.story = Story(call.context.received_at)
        self._around = surroundings
        self._on_settled = on_settled
        self.rate: RateFacts | None = None
        """What the caller's key has left, where it has quotas."""
        self.mailbox = Mailbox()
        self._status: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lane = Lane(surroundings.engine, None)
        """What answers the call, and what it serves; chosen when the call enters."""
        self._flow = PromptFlow(call.prompts, call.num_choices, self, call.width)
        self._sinks = self._flow.sinks
        self._choices = [prompt.open_choice() for prompt in call.prompts for _ in range(call.num_choices)]
        self._last_token_at: list[float | None] = [None] * len(self._choices)
        self._num_unfinished = len(self._choices)
        self._num_in_engine = len(self._choices)
        self._is_held = False
        self._has_output = False
        self._is_submitted = False
        self._timer = DeadlineTimer(
            call.context.deadlines,
            surroundings.clock,
            has_first_token=lambda: self.story.first_token_at is not None,
            on_passed=lambda error: self.expire(error, cause="deadline"),
        )

    # ---- from the service ----

    def start(self) -> None:
        """Asks the gate for entry. What follows is decided in `admit` and `refuse`, or by a deadline."""
        self.call.context.record.begin_work()
        self.story.entered_at = self._around.clock.now()
        self._timer.check()
        if self.story.error is None:
            self._around.gate.enter(self._ticket(), self)

    def _ticket(self) -> Ticket:
        call, deadlines = self.call, self.call.context.deadlines
        return Ticket(
            ticket_id=call.context.request_id,
            key_id=call.context.principal.key_id,
            num_choices=call.num_sequences,
            num_prompt_tokens=call.num_prompt_tokens,
            num_output_tokens=sum(p.request.stop.max_tokens * p.request.num_choices for p in call.prompts),
            num_blocks=call.num_peak_blocks,
            received_at=call.context.received_at,
            priority=call.prompts[0].request.priority,
            first_token_by=None if deadlines.first_token is None else deadlines.first_token.at,
            finish_by=None if deadlines.whole is None else deadlines.whole.at,
            quotas=call.context.principal.quotas,
            model=call.model,
        )

    # ---- from the gate ----

    def admit(self, rate: RateFacts | None) -> None:
        """Hands the prompts to the engine."""
        self.rate = rate
        self.story.admitted_at = self._around.clock.now()
        self._apply(Event.ADMIT)
        try:
            self.lane = self._around.lane()
            self._flow.submit(self.lane.engine)
        except ServeError as error:
            self._abort_engine()
            self._end_unsubmitted(Event.FAIL, error)
            return
        self._is_submitted = True
        self._apply(Event.SUBMIT)

    def refuse(self, error: ServeError) -> None:
        """The request may not enter: its client is told why. The gate may see a deadline pass before our timer does."""
        if isinstance(error, DeadlineExceeded):
            self.story.cause = "deadline"
        self._end_unsubmitted(Event.REFUSE, error)

    def _end_unsubmitted(self, event: Event, error: ServeError) -> None:
        """Prompts that the engine had taken already have been aborted: whatever still comes of them is not ours."""
        self.story.error = error
        self._num_in_engine = 0
        self._flow.close()
        self._apply(event)

    async def wait_status(self, hold_s: float) -> None:
        """Waits for the first output, the failure or the end of the request, at most `hold_s` seconds."""
        await asyncio.wait([self._status], timeout=hold_s)

    async def take(self) -> list[IndexedEvent] | None:
        """As `Mailbox.take`; lets the engine go on when it was held."""
        items = await self.mailbox.take()
        self.note_taken()
        return items

    def note_taken(self) -> None:
        """The reader has taken what waited: a held engine may go on."""
        if self._is_held:
            self._hold(held=False)

    @property
    def error(self) -> ServeError | None:
        """What the client has to be told instead of an answer."""
        return self.story.error

    @property
    def counts(self) -> TokenCounts:
        """Tokens so far."""
        return TokenCounts(
            num_prompt=sum(sink.num_prompt_tokens for sink in self._sinks),
            num_cached=sum(sink.num_cached_tokens for sink in self._sinks),
            num_completion=sum(choice.num_tokens for choice in self._choices),
            num_reasoning=sum(choice.num_reasoning_tokens for choice in self._choices),
        )

    def prompt_logprobs(self, prompt: int) -> list[TokenLogprob | None]:
        """Returns the scores of one prompt's tokens, when they were asked for."""
        echo = self._sinks[prompt].echo
        return [] if echo is None else echo.scores

    @property
    def is_drained(self) -> bool:
        """Whether everything there will ever be has been taken."""
        return self.mailbox.is_drained

    def nudge(self) -> None:
        self.mailbox.nudge()

    def decide_status(self) -> None:
        """A stream's status is 200 from its first output on, whatever happens before its client has seen it."""
        if self.machine.allows(Event.SEND_HEAD):
            self.note_sent(Event.SEND_HEAD, STREAM_STATUS)

    def note_sent(self, event: Event, status: int) -> None:
        """Records what the client has been sent: one of the SEND events, and the reply's status."""
        self.story.status = status
        self._apply(event)

    def disconnect(self, cause: str) -> None:
        """Nobody reads any more, because of `cause`; an earlier cause counts. Harmless after the end."""
        if self.machine.is_reply_open and self.story.cause is None:
            self.story.cause = cause
        self.mailbox.close()
        self._apply(Event.DISCONNECT)

    def expire(self, error: ServeError, cause: str | None = None) -> None:
        """The server ends the work with `error`, and counts it under `cause`. A complete answer is not taken back."""
        if self._num_unfinished == 0:
            return
        if self.story.error is None and self.machine.is_reply_open:
            self.story.error = error
            self.story.cause = cause
        self._apply(Event.EXPIRE)

    def give_up(self, error: ServeError) -> None:
        """A fault of ours: the client is told `error`, whatever there is of an answer. Harmless after the end."""
        if self.machine.is_reply_open:
            self.story.error = error
            self._apply(Event.EXPIRE)
            self.note_sent(Event.SEND_ERROR, row_of(error).status)

    @property
    def _admitted_s(self) -> float:
        at = self.story.admitted_at
        return 0.0 if at is None else at - self.story.received_at

    # ---- from the engine ----

    def deliver(self, sink: PromptSink, delta: TokenDelta) -> None:
        """Takes new tokens of one choice. A fault of ours in here ends this request, never the engine's channel."""
        if not sink.is_open[delta.choice]:
            return
        try:
            self._deliver(sink, delta)
        except Exception as fault:
            fault.add_note(self.call.context.note)
            self._around.on_fault(fault)
            self.expire(InternalError("An internal error occurred."))
            if delta.finish is not None and sink.is_open[delta.choice]:
                self._close_in_engine(sink, delta.choice, Event.ABORT_ACK)

    def fail(self, error: ServeError) -> None:
        """The engine is lost: every prompt's sink hears it, the first counts. A complete answer is still sent."""
        if self._num_in_engine == 0:
            return
        self._num_in_engine = 0
        self._flow.close()
        if self.story.error is None and self._num_unfinished:
            self.story.error = error
        self._apply(Event.FAIL)

    def _deliver(self, sink: PromptSink, delta: TokenDelta) -> None:
        index = sink.base + delta.choice
        if delta.num_cached_tokens:
            sink.num_cached_tokens = delta.num_cached_tokens
        if delta.num_prompt_tokens or self.story.started_at is None:
            self._note_started(sink, delta)
        choice = self._choices[index]
        if not choice.is_finished:
            self._feed(sink, index, choice, delta)
        if delta.finish is None:
            return
        if choice.is_finished:
            self._close_in_engine(sink, delta.choice, Event.FINISH)
        else:
            self._fail_choice(sink, delta)

    def _note_started(self, sink: PromptSink, delta: TokenDelta) -> None:
        """The first output of a prompt: it no longer waits, and the engine's own counts are known."""
        if self.story.started_at is None:
            self.story.started_at = self._around.clock.now()
            self._around.gate.note_started(self.call.context.request_id)
        if delta.num_prompt_tokens:
            sink.num_prompt_tokens = delta.num_prompt_tokens
            if delta.finish is EngineFinish.ABORTED and not delta.queue_s:
                return  # it left the engine's queue as it had come
            queue_s = self._admitted_s + delta.queue_s
            self.story.queue_s = max(queue_s, self.story.queue_s or 0.0)

    def _feed(self, sink: PromptSink, index: int, choice: ChoiceReader, delta: TokenDelta) -> None:
        num_before = choice.num_tokens
        events = choice.feed(delta)
        num_tokens = choice.num_tokens - num_before
        if sink.echo is not None:
            events = sink.echo.precede(delta, events)
        if num_tokens:
            self._note_tokens(index, num_tokens)
        if events:
            self.mailbox.put(index, events)
            if not self._has_output:
                self._note_output()
            if self.mailbox.num_bytes > self._around.unsent_bytes and not self._is_held:
                self._hold(held=True)
        if choice.is_finished:
            self._finish_text(sink, delta, choice)
        elif num_tokens:
            self._apply(Event.OUTPUT)

    def _note_output(self) -> None:
        """The first output decides the status of a stream, and ends the wait for it."""
        self._has_output = True
        if self.call.is_stream:
            self.decide_status()
        self._settle_status()

    def _note_tokens(self, index: int, num_tokens: int) -> None:
        now = self._around.clock.now()
        last_at = self._last_token_at[index]
        self._last_token_at[index] = now
        if self.story.first_token_at is None:
            self.story.first_token_at = now
        self._around.observer.tokens_delivered(num_tokens, None if last_at is None else now - last_at)

    def _finish_text(self, sink: PromptSink, delta: TokenDelta, choice: ChoiceReader) -> None:
        """A choice has all its text. One that stopped by itself is aborted alone, unless it was the last."""
        self.story.finish_reason = self.story.finish_reason or choice.outcome
        self._num_unfinished -= 1
        if self._num_unfinished == 0:
            self.mailbox.close()
            if (self._num_in_engine > 1 or delta.finish is None) and self.machine.allows(Event.STOP):
                self._apply(Event.STOP)
        elif delta.finish is None:
            self.lane.engine.abort(sink.request_id, delta.choice)

    def _close_in_engine(self, sink: PromptSink, choice: int, event: Event) -> None:
        sink.is_open[choice] = False
        self._flow.note_closed()
        self._num_in_engine -= 1
        if self._num_in_engine == 0:
            self._apply(event)
        elif self._flow.has_waiting and self.machine.work is Work.RUNNING:
            self._submit_more()

    def _submit_more(self) -> None:
        """The engine has room for further prompts of this call. One that it refuses ends the call."""
        try:
            self._flow.submit(self.lane.engine)
        except ServeError as error:
            is_lost = isinstance(error, EngineUnavailable)
            self.story.error = EngineLost("The engine stopped while it worked on this request.") if is_lost else error
            self._num_in_engine -= self._flow.drop_waiting()
            self._apply(Event.EXPIRE if self._num_in_engine else Event.FAIL)

    def _fail_choice(self, sink: PromptSink, delta: TokenDelta) -> None:
        """The engine ended a choice that was not complete: because we asked, or because it could not go on."""
        if self.story.error is None and self.machine.is_reply_open:
            self.story.error = EngineRefused(delta.error or "The engine gave this request up.")
            if self._num_in_engine > 1:
                self._apply(Event.EXPIRE)
            else:
                sink.is_open[delta.choice] = False
                self._num_in_engine = 0
                self._apply(Event.FAIL)
                return
        self._close_in_engine(sink, delta.choice, Event.ABORT_ACK)

    # ---- effects ----

    def _apply(self, event: Event) -> None:
        for effect in self.machine.apply(event):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Effect.ABORT_ENGINE:
                self._abort_engine()
            case Effect.LEAVE_GATE:
                counts = self.counts
                self.story.left_at = self._around.clock.now()
                self._around.gate.leave(self.call.context.request_id, counts.num_prompt + counts.num_completion)
            case Effect.REPLY_ERROR_STATUS | Effect.REPLY_ERROR_EVENT:
                self.mailbox.close()
                self._settle_status()
            case Effect.SETTLE:
                self._timer.cancel()
                self._settle_status()
                self._report_end()
                self._on_settled(self)

    def _report_end(self) -> None:
        story, observer = self.story, self._around.observer
        now, was_told = self._around.clock.now(), self.machine.reply is Reply.SENT_ERROR
        details = trace_work(self.call, story, self.counts, self._choices, self._last_token_at)
        facts = describe_end(self.call, story, self.counts, now=now, was_told=was_told, details=details)
        if story.error is not None and story.cause is None and not self._is_submitted:
            row = row_of(story.error)
            observer.request_refused(self.call.context.route, row.status, row.code)
        else:
            observer.request_ended(facts)
        self.call.context.record.end_work(facts)

    def _abort_engine(self) -> None:
        self._num_in_engine -= self._flow.abort(self.lane.engine)

    def _hold(self, *, held: bool) -> None:
        self._is_held = held
        self._flow.hold(self.lane.engine, held=held)

    def _settle_status(self) -> None:
        if not self._status.done():
            self._status.set_result(None)
