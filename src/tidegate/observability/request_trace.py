"""RequestTrace: one request's place in a distributed trace: ids for logs and spans, and what the next hop is told.

Decides, from what the caller sent and the operator chose, whose trace the request belongs to and whether the server
records its part. Its rules:

- A caller's well-formed `traceparent` is continued; anything else begins a new trace.
- Where the server records, its own span is the parent of what follows; where it does not, the caller's context goes on
  unchanged, so that no span of others hangs on one that nobody has.
- A trace that begins here and is not recorded because nothing is, is not told to engines: a flag that says "not
  sampled" would silence their own tracing.

Ids name; they never decide what a caller may do. Does not know spans, exporters, or HTTP.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from tidegate.contract.trace_context import RANDOM, SAMPLED, TraceParent, read_traceparent, read_tracestate
from tidegate.inference.hop import HopLabels

_TRACE_BYTES, _SPAN_BYTES = 16, 8
_RATIO_BITS = 64
WORK = "work"
"""The span of the engine's part; others are named in `request_spans.py`."""


@dataclass(frozen=True, slots=True)
class TracePolicy:
    """`records`: spans are exported. `ratio`: of new traces, 0 to 1. `follows_caller`: its flag decides on its own."""

    records: bool = False
    ratio: float = 1.0
    follows_caller: bool = True


UNTRACED = TracePolicy()


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """`span_id` is what logs name: the server's own span, or the caller's where its context goes on unchanged.

    `parent_id` is the caller's span above the server's own; None for a trace that begins here.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    is_recorded: bool
    flags: int
    state: str = ""
    is_told: bool = True
    """Whether the next hop hears of it."""

    def hop(self, client_id: str) -> HopLabels:
        """Returns what the next hop is told."""
        if not self.is_told:
            return HopLabels(client_id=client_id)
        parent = child_span_id(self.span_id, WORK) if self.is_recorded else self.span_id
        return HopLabels(TraceParent(self.trace_id, parent, self.flags).text, self.state, client_id)


def begin_trace(
    traceparent: str | None, tracestate: str | None, policy: TracePolicy, entropy: Callable[[int], bytes]
) -> RequestTrace:
    """Returns the trace of a request from its headers' values; None for absent ones. Raises nothing for their sake."""
    caller = read_traceparent(traceparent)
    if caller is None:
        trace_id = _hex(entropy(_TRACE_BYTES))
        is_recorded = policy.records and is_in_ratio(trace_id, policy.ratio)
        flags = RANDOM | (SAMPLED if is_recorded else 0)
        span_id = _hex(entropy(_SPAN_BYTES))
        return RequestTrace(trace_id, span_id, None, is_recorded, flags, is_told=policy.records)
    state = read_tracestate(tracestate)
    wanted = caller.is_sampled if policy.follows_caller else is_in_ratio(caller.trace_id, policy.ratio)
    if not (policy.records and wanted):
        return RequestTrace(caller.trace_id, caller.parent_id, None, is_recorded=False, flags=caller.flags, state=state)
    span_id = _hex(entropy(_SPAN_BYTES))
    return RequestTrace(caller.trace_id, span_id, caller.parent_id, True, caller.flags | SAMPLED, state)


def is_in_ratio(trace_id: str, ratio: float) -> bool:
    """Whether a trace belongs to the share that is recorded: by its id alone, as OpenTelemetry's own sampler does."""
    return int(trace_id, 16) % (1 << _RATIO_BITS) < round(ratio * (1 << _RATIO_BITS))


def child_span_id(span_id: str, name: str) -> str:
    """Returns the id of a span below another: known to all who know the parent and what the child is called."""
    return _hex(blake2b(name.encode(), key=bytes.fromhex(span_id), digest_size=_SPAN_BYTES).digest())


def _hex(number: bytes) -> str:
    return number.hex() if any(number) else "1".zfill(2 * len(number))
