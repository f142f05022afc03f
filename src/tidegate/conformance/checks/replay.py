"""Idempotent answers: recorded ones, fresh ones, and how often the work was done."""

from collections import Counter
from collections.abc import Iterator

from tidegate.conformance.checks.load import load_of
from tidegate.conformance.checks.refusal import is_refused
from tidegate.conformance.checks.whole_answer import is_whole_answer
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

REPLAYED = "idempotent-replayed"


def is_fresh(exchange: Exchange) -> Iterator[Fault]:
    """The answer is not a recorded one: no `Idempotent-Replayed`."""
    if REPLAYED in exchange.headers:
        yield Fault(f"Idempotent-Replayed: {exchange.headers[REPLAYED]} on an answer that nobody got before")


def is_replay_of(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """`second` is the record of `first`: same status, same content type, same bytes of body or events, and says so."""
    yield from is_fresh(first)
    if second.headers.get(REPLAYED) != "true":
        yield Fault(f"Idempotent-Replayed is {second.headers.get(REPLAYED)!r}, expected 'true'", ask=second.ask)
    if second.status != first.status:
        yield Fault(f"status {second.status} after {first.status}", ask=second.ask)
    if second.headers.get("content-type") != first.headers.get("content-type"):
        yield Fault(f"content type {second.headers.get('content-type')!r}, was another before", ask=second.ask)
    if first.is_stream:
        before = [timed.event.data for timed in first.events]
        after = [timed.event.data for timed in second.events]
        if after != before:
            yield Fault(f"{len(after)} events, not the {len(before)} of the first answer, byte by byte", ask=second.ask)
    elif second.body != first.body:
        yield Fault("the body differs from that of the first answer", ask=second.ask)


def are_replays_of_one(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """All copies are recorded answers with the same bytes."""
    for exchange in exchanges:
        if exchange.status != 200 or exchange.headers.get(REPLAYED) != "true":
            yield Fault(f"status {exchange.status}, no recorded answer", copy=exchange.copy)
        elif exchange.body != exchanges[0].body:
            yield Fault("other bytes than copy 0", copy=exchange.copy)


def are_one_run(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """Of copies sent at once under one key one runs; each other is told 409, or gets the record of that one."""
    fresh = [exchange for exchange in exchanges if exchange.status == 200 and REPLAYED not in exchange.headers]
    if len(fresh) != 1:
        statuses = Counter(exchange.status for exchange in exchanges)
        yield Fault(f"{len(fresh)} of {len(exchanges)} requests with one key ran (statuses {dict(statuses)})")
    for exchange in fresh:
        yield from is_whole_answer(exchange)
    for exchange in exchanges:
        if exchange.status == 200 and REPLAYED in exchange.headers and fresh and exchange.body != fresh[0].body:
            yield Fault("a recorded answer with other bytes than the one that ran", copy=exchange.copy)
        elif exchange.status != 200:
            for fault in is_refused(
                exchange, status=409, codes=("idempotency_key_in_use",), kind="idempotency_error", may_retry=True
            ):
                yield Fault(fault.says, copy=exchange.copy)


def is_some_duplicate_refused(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """At least one copy met the first while it was live. Never a fault: a fast answer leaves no time for it."""
    if not any(exchange.status == 409 for exchange in exchanges):
        raise CannotTell("the first answer was there before the second request came")
    yield from ()


def are_other_runs(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Two answers of two runs: neither is a record, and their ids differ."""
    for exchange in (first, second):
        for fault in is_fresh(exchange):
            yield Fault(fault.says, ask=exchange.ask)
        yield from is_whole_answer(exchange)
    ids = [at(exchange.chunks[0] if exchange.chunks else exchange.json, "id") for exchange in (first, second)]
    if ids[0] == ids[1]:
        yield Fault(f"two runs have one id, {ids[0]!r}", ask=second.ask)


def is_nothing_counted(before: Exchange, after: Exchange) -> Iterator[Fault]:
    """The server's counters of tokens and of ended requests stand where they stood."""
    yield from has_counted(before, after, runs=0)


def has_counted(before: Exchange, after: Exchange, *, runs: int) -> Iterator[Fault]:
    """Exactly `runs` requests ended well in between by the server's own count; tokens were generated for them only."""
    earlier, later = load_of(before), load_of(after)
    if earlier.ended is None or later.ended is None or earlier.generated is None or later.generated is None:
        raise CannotTell(f"{later.server} does not count what is asked for")
    if later.ended - earlier.ended != runs:
        yield Fault(f"{later.ended - earlier.ended:g} requests ended well in between, expected {runs}")
    if (later.generated > earlier.generated) != (runs > 0):
        yield Fault(f"{later.generated - earlier.generated:g} tokens were generated in between for {runs} runs")
