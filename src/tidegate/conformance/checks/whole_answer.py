"""An answer that came to its end, and one that was cut off in a way that a client can tell."""

from collections.abc import Iterator

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.refusal import OVERLOADED, has_error_object, says_when_to_retry
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange
from tidegate.conformance.wire.json_text import NOT_JSON, at


def is_whole_answer(exchange: Exchange, *, num_choices: int = 1) -> Iterator[Fault]:
    """Status 200, framed to its end, without an error; each choice has a finish reason, and a stream its `[DONE]`."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}: {exchange.ending.value} {exchange.detail} {exchange.body[:120]!r}")
        return
    if exchange.ending is not Ending.WHOLE:
        yield Fault(f"the answer did not come to its end: {exchange.ending.value} {exchange.detail}".rstrip())
    if not exchange.is_stream and exchange.json is NOT_JSON:
        yield Fault(f"the answer is not JSON: {exchange.body[:80]!r}")
        return
    answer = read_answer(exchange)
    if answer.error is not None:
        yield Fault(f"the answer ends with an error: {str(answer.error)[:200]}")
    for index in range(num_choices):
        if answer.choice(index).finish_reason is None:
            yield Fault(f"choice {index} has no finish_reason")
    if exchange.is_stream and not exchange.is_done:
        yield Fault("the stream has no [DONE]")


def is_answered_or_refused(exchange: Exchange, *, says_when: bool = False, num_choices: int = 1) -> Iterator[Fault]:
    """A whole answer, or a refusal with 429 or 503 and an error object; with `says_when` also with `Retry-After`. Once
    the status is sent, an error event without finish reason and `[DONE]` is a refusal too.
    """
    if exchange.is_stream and read_answer(exchange).error is not None:
        yield from is_visibly_cut(exchange)
        return
    if exchange.status not in OVERLOADED:
        yield from is_whole_answer(exchange, num_choices=num_choices)
        return
    yield from has_error_object(exchange)
    if says_when:
        yield from says_when_to_retry(exchange)


def are_some_answered(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """At least one of the requests got an answer: a server that refuses all is not busy but away."""
    if not any(exchange.status == 200 for exchange in exchanges):
        yield Fault(f"none of {len(exchanges)} requests was answered", ask=exchanges[0].ask)


def is_visibly_cut(exchange: Exchange, *, code: str | None = None) -> Iterator[Fault]:
    """A stream that ends early says so: one error event, with `code` where given, last; no finish, no `[DONE]`."""
    if exchange.status != 200 or not exchange.is_stream:
        raise CannotTell(f"the answer is no stream: status {exchange.status}")
    answer = read_answer(exchange)
    if answer.error is None and exchange.is_done:
        raise CannotTell("the answer came to its end before it could be cut off")
    errors = [event for event, chunk in exchange.numbered_chunks if isinstance(at(chunk, "error"), dict)]
    if len(errors) != 1 or errors[0] != exchange.numbered_chunks[-1][0]:
        yield Fault(f"{len(errors)} error events, expected one, last of {len(exchange.chunks)}")
    if code is not None and at(answer.error, "code") != code:
        yield Fault(f"the error's code is {at(answer.error, 'code')!r}, expected {code!r}")
    told = [choice.index for choice in answer.choices.values() if choice.finish_reasons]
    if told:
        yield Fault(f"choices {told} have a finish_reason although the stream was cut off")
    if exchange.is_done:
        yield Fault("[DONE] follows the error: a client takes the answer for whole")


def is_answered_or_timed_out(exchange: Exchange) -> Iterator[Fault]:
    """A whole answer, or 408: the server need not wait for slow requests, but says so. The 408 may be the HTTP server's
    own, without a body.
    """
    if exchange.status != 408:
        yield from is_whole_answer(exchange)
    elif exchange.body:
        yield from has_error_object(exchange)
