"""Whether work that nobody waits for ends, seen from outside: by the server's own metrics, and by the time that a
request takes.
"""

from collections.abc import Iterator
from statistics import median

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
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


def is_back_to(before: Exchange, after: Exchange, *, with_memory: bool = False) -> Iterator[Fault]:
    """Not more runs or waits than before; with `with_memory` not more memory is held either, which only our contract
    promises: others may keep what a later request can use.
    """
    earlier, later = load_of(before), load_of(after)
    faults = []
    figures = [
        ("running requests", earlier.running, later.running),
        ("waiting requests", earlier.waiting, later.waiting),
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
    earlier, meanwhile = load_of(before), load_of(during)
    if meanwhile.running + (meanwhile.waiting or 0) <= earlier.running + (earlier.waiting or 0):
        raise CannotTell(f"{meanwhile.server}'s metrics did not show the requests while they ran")
    yield from ()


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
