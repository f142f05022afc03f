"""Whether work that nobody waits for ends, seen from outside: by the server's own metrics, and by the time that a
request takes.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange
from tidegate.conformance.wire.metric_formats import Load, read_load

IS_BUSY_RATIO = 2.0
"""A request beside the load must take at least so much longer than alone, or time tells nothing of the load."""
IS_FREE_SHARE = 0.5
"""Of the extra time that the load costs: what may be left of it after the load is gone."""
IS_TAKEN_SHARE = 0.8
"""From here on it counts as still there."""
STANDSTILL_RATIO = 10.0


def load_of(exchange: Exchange) -> Load:
    """Returns what the page of metrics says. Raises CannotTell where it says nothing that is known."""
    load = read_load(exchange.body.decode("utf-8", "replace")) if exchange.status == 200 else None
    if load is None:
        raise CannotTell(f"no metrics of a known format: status {exchange.status}")
    return load


def is_at_rest(exchange: Exchange) -> Iterator[Fault]:
    """Nothing runs and nothing waits."""
    load = load_of(exchange)
    if load.running or load.waiting:
        yield Fault(f"{load.running:g} requests run and {load.waiting or 0:g} wait, by {load.server}'s own metrics")


def rests(exchange: Exchange) -> Iterator[Fault]:
    """As `is_at_rest`, but never a fault: what somebody else runs allows no verdict."""
    for fault in is_at_rest(exchange):
        raise CannotTell(f"the server never came to rest before: {fault.says}")
    yield from ()


def is_back_to(before: Exchange, after: Exchange, *, with_memory: bool = False) -> Iterator[Fault]:
    """Not more runs and waits, together, than before; with `with_memory` not more memory is held either, which only
    our contract promises: others may keep what a later request can use.

    Together, because what waited before may run by now.
    """
    earlier, later = load_of(before), load_of(after)
    faults = []
    figures: list[tuple[str, float | None, float | None]] = [
        ("running and waiting requests", _num_requests(before), _num_requests(after))
    ]
    if with_memory:
        figures.append(("used blocks", earlier.used, later.used))
    for what, then, now in figures:
        if then is not None and now is not None and now > then + 1e-9:
            faults.append(Fault(f"{now:g} {what}, {then:g} before, by {later.server}'s own metrics"))
    if faults and later.is_lazy:
        raise CannotTell(f"{later.server} may show what ran last while nothing runs: {faults[0].says}")
    yield from faults


def was_running(before: Exchange, during: Exchange) -> Iterator[Fault]:
    """Metrics showed the load while it was there. Never a fault: without it, metrics prove nothing afterwards."""
    if list(is_busier(before, during)):
        raise CannotTell(f"{load_of(during).server}'s metrics did not show the requests while they ran")
    yield from ()


def is_busier(before: Exchange, during: Exchange) -> Iterator[Fault]:
    """More runs or waits than before."""
    if _num_requests(during) <= _num_requests(before):
        yield Fault(f"{_num_requests(during):g} requests run or wait, {_num_requests(before):g} before")


def _num_requests(exchange: Exchange) -> float:
    load = load_of(exchange)
    return load.running + (load.waiting or 0)


def ends_with_its_client(
    before: Exchange, beside: Exchange, kept: Exchange, gone: Exchange, after: Exchange
) -> Iterator[Fault]:
    """After `gone` has left, not more runs or waits than `beside` a request like it that is `kept`.

    The one that is kept proves that the work was still due: its answer goes on when the other's work is seen to have
    ended, so no model has ended it by itself, and gauges that are written while something runs are fresh. Where it
    gains no text while we look, they may be from before; where it had none when we looked first, they may not have
    counted it whole. Raises CannotTell where it proves nothing.
    """
    if list(is_busier(before, beside)):
        raise CannotTell(f"{load_of(beside).server}'s metrics did not show a request while it ran")
    for name, exchange in (("that was left", gone), ("like it", kept)):
        if exchange.ending is not Ending.LEFT or exchange.status not in (None, 200):
            raise CannotTell(
                f"the answer {name} ended by itself after {exchange.duration_s:.1f} s, status {exchange.status}"
            )
    if after.sent_at_s > _end_s(kept):
        raise CannotTell("the request that was kept had left when metrics were asked for")
    if _end_s(after) > _end_s(kept):
        raise CannotTell(f"metrics were answered after {after.duration_s:.1f} s, too late to tell anything")
    faults = [replace(fault, ask=gone.ask) for fault in is_back_to(beside, after)]
    left_at_s = _end_s(gone)
    begun_at_s = min((kept.sent_at_s + piece.at_s for piece in kept.pieces), default=math.inf)
    if faults and begun_at_s > beside.sent_at_s:
        raise CannotTell("the request that was kept had not begun when metrics were first looked at")
    if faults and not any(left_at_s < kept.sent_at_s + piece.at_s < after.sent_at_s for piece in kept.pieces):
        raise CannotTell(
            f"the answer that was kept stood still for the {after.sent_at_s - left_at_s:.1f} s that were looked at: a "
            "step of the engine may have been as long, with gauges from before it"
        )
    yield from faults


def work_is_still_due(control: Exchange, last: Exchange, *loads: Exchange) -> Iterator[Fault]:
    """An answer like those of the load takes longer than from the load's start to the last look. Never a fault: else
    the load may have ended by itself.
    """
    needed = _end_s(last) - min(load.sent_at_s for load in loads)
    if control.status != 200 or (control.ending is not Ending.LEFT and control.duration_s < needed):
        raise CannotTell(
            f"an answer like those that were left ends by itself after {control.duration_s:.1f} s; "
            f"{needed:.1f} s were looked at"
        )
    if control.duration_s < needed:
        raise CannotTell(f"the answer was followed for {control.duration_s:.1f} s, {needed:.1f} s were looked at")
    yield from ()


def _end_s(exchange: Exchange) -> float:
    return exchange.sent_at_s + exchange.duration_s


def _took_s(*exchanges: Exchange) -> float:
    for exchange in exchanges:
        if exchange.status != 200:
            raise CannotTell(f"a measured request was answered with {exchange.status}")
    return median(exchange.duration_s for exchange in exchanges)


def has_quickened(
    alone: Exchange, beside: Exchange, first: Exchange, second: Exchange, third: Exchange
) -> Iterator[Fault]:
    """Three requests after the load has left take about as long as one alone, not as one beside the load. Times of one
    machine: a fault only where the load was plain to see and is still there in the median of three.
    """
    quiet, loaded, after = _took_s(alone), _took_s(beside), _took_s(first, second, third)
    if loaded < quiet * IS_BUSY_RATIO:
        raise CannotTell(f"the load does not show in time: {loaded:.2f} s beside it, {quiet:.2f} s alone")
    left = (after - quiet) / (loaded - quiet)
    if left >= IS_TAKEN_SHARE:
        yield Fault(
            f"a request takes {after:.2f} s after the clients have left, as with them ({loaded:.2f} s); "
            f"{quiet:.2f} s alone"
        )
    elif left > IS_FREE_SHARE:
        raise CannotTell(f"between free and taken: {quiet:.2f} s alone, {loaded:.2f} s beside, {after:.2f} s after")


def is_not_held_up(quiet: Exchange, beside: Exchange, *, spare_s: float) -> Iterator[Fault]:
    """A request beside others is served: ten times slower and `spare_s` more is standstill."""
    if beside.status is None:
        yield Fault(f"no answer beside the others: {beside.ending.value} {beside.detail}", ask=beside.ask)
        return
    alone, now = _took_s(quiet), _took_s(beside)
    if now > alone * STANDSTILL_RATIO + spare_s:
        yield Fault(f"{now:.2f} s beside the others, {alone:.2f} s alone", ask=beside.ask)


def is_no_slower_than_beside(
    quiet: Exchange, control: Exchange, beside: Exchange, *, spare_s: float, times: float
) -> Iterator[Fault]:
    """As `is_not_held_up`, but a request may also take `times` as long as the control, and `spare_s` more: servers have
    as many slots, and compute as fast, as they do, and a request that waits for its turn is not held up.
    """
    if control.status != 200:
        raise CannotTell(f"the control was answered with {control.status}: {control.ending.value}")
    allowed_s = control.duration_s * times + spare_s
    if beside.status is None or beside.duration_s > allowed_s:
        for fault in is_not_held_up(quiet, beside, spare_s=spare_s):
            yield replace(fault, says=f"{fault.says}; {control.duration_s:.2f} s for {control.ask!r}")
