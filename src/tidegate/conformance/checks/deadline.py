"""Answers to requests whose time is limited."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at
from tidegate.conformance.wire.request_key import read_sent_header

UNREACHABLE = ("deadline_unreachable", "deadline_exceeded")
"""A deadline that has passed when the request is looked at is exceeded; one that the queue cannot meet, unreachable."""
GRACE_S = 5.0
"""How late after the deadline a machine under load may tell of it."""


CLEARLY_S = 0.1
"""An answer within so much more than its deadline may have been on its way when the deadline passed."""


def is_out_of_time(near: Exchange, exchange: Exchange) -> Iterator[Fault]:
    """504, not to be retried, with one of both codes, and nothing that a client is billed for. `near`: an answer that
    takes no work, so that its time is the network's. Raises CannotTell where the work was done within the deadline, or
    so soon after it that the network may have been what took longer.
    """
    if exchange.status == 200 and read_answer(exchange).error is None:
        over_s = exchange.duration_s - near.duration_s - _deadline_s(exchange)
        if over_s < CLEARLY_S:
            raise CannotTell(f"the whole answer took {exchange.duration_s:.3f} s only")
        yield Fault(f"a whole answer came {over_s:.1f} s after its time was over", ask=exchange.ask)
        return
    for fault in is_refused(exchange, status=504, codes=UNREACHABLE, kind="timeout_error", may_retry=False):
        yield replace(fault, ask=exchange.ask)
    if at(exchange.json, "usage") is not MISSING:
        yield Fault("a refusal carries usage", ask=exchange.ask)


def is_foreseen(near: Exchange, exchange: Exchange) -> Iterator[Fault]:
    """504 `deadline_unreachable`, long before the deadline: what is ahead in the queue takes longer, and the server has
    seen how long such work takes. Raises CannotTell where it did not take longer, or where the deadline had passed.
    """
    yield from is_out_of_time(near, exchange)
    code = at(exchange.json, "error", "code")
    if code == "deadline_exceeded":
        if exchange.duration_s >= _deadline_s(exchange):
            raise CannotTell("it waited until its deadline had passed")
        yield Fault(
            f"it is told after {exchange.duration_s:.2f} s that its deadline of {_deadline_s(exchange):g} s has passed",
            ask=exchange.ask,
        )


def is_timed_out(exchange: Exchange) -> Iterator[Fault]:
    """504 `deadline_exceeded`, not to be retried, of work that had begun. Raises CannotTell where the work was done in
    time, or refused before it began.
    """
    if exchange.status == 200 and exchange.duration_s < _deadline_s(exchange) + CLEARLY_S:
        raise CannotTell(f"the whole answer took {exchange.duration_s:.2f} s only")
    if exchange.status == 504 and at(exchange.json, "error", "code") == "deadline_unreachable":
        raise CannotTell("it was refused before it began")
    yield from is_refused(exchange, status=504, codes=("deadline_exceeded",), kind="timeout_error", may_retry=False)


def is_in_time(exchange: Exchange) -> Iterator[Fault]:
    """The end came soon after the request's deadline, not when the work would have been done."""
    deadline_s = _deadline_s(exchange)
    if exchange.duration_s > deadline_s + GRACE_S:
        yield Fault(f"it ended after {exchange.duration_s:.1f} s, its deadline was {deadline_s:g} s")


def triple_time(exchange: Exchange) -> str:
    """Returns a deadline in milliseconds that a short answer meets and a long one does not: three times as long as a
    short one took, and 0.6 s at least. Raises CannotTell where it took none.
    """
    if exchange.status != 200:
        raise CannotTell(f"the measured request was answered with {exchange.status}")
    return str(max(600, round(exchange.duration_s * 3000)))


def has_same_text(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Both answers say the same. Raises CannotTell where one of them has no text."""
    texts = [read_answer(exchange).text for exchange in (first, second)]
    if not all(texts):
        raise CannotTell("an answer without text")
    if texts[0] != texts[1]:
        yield Fault(f"text {texts[1][:60]!r}, {texts[0][:60]!r} before", ask=second.ask)


def took_too_long(exchange: Exchange) -> Iterator[Fault]:
    """The answer needs more time than it was given. Never a fault: a fast model needs less."""
    if exchange.status == 200 and read_answer(exchange).error is None:
        raise CannotTell(f"the whole answer took {exchange.duration_s:.2f} s only")
    if at(exchange.json, "error", "code") == "deadline_unreachable":
        raise CannotTell("it was refused before it began")
    yield from ()


def _deadline_s(exchange: Exchange) -> float:
    """Returns the least deadline that was sent, in seconds."""
    told = [at(exchange.request_json, name) for name in ("deadline_ms", "first_token_deadline_ms")]
    milliseconds = [value for value in told if isinstance(value, int)]
    with suppress(CannotTell):
        milliseconds.append(int(read_sent_header(exchange, name="X-Deadline-Ms")))
    return min(milliseconds) / 1000
