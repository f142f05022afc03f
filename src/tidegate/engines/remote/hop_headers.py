"""What a request to an engine says of where it comes from, under the names of HTTP's headers. Pure.

`X-Request-Id` is the engine's own name for the exchange, never the caller's: vLLM keys requests by this header, before
the id in the body, and callers may give one id to two live requests. Theirs goes as `X-Client-Request-Id`, which
nothing is keyed by.
"""

from tidegate.inference.hop import HopLabels

REQUEST_ID, CLIENT_ID = "X-Request-Id", "X-Client-Request-Id"
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"


def hop_headers(hop: HopLabels | None, remote_id: str) -> tuple[tuple[str, str], ...]:
    """Returns the headers of one exchange; `remote_id` names it in the engine."""
    client = ((CLIENT_ID, hop.client_id),) if hop is not None and hop.client_id else ()
    return ((REQUEST_ID, remote_id), *client, *trace_context(hop).items())


def trace_context(hop: HopLabels | None) -> dict[str, str]:
    """Returns `traceparent` and `tracestate`, as far as they are known."""
    if hop is None:
        return {}
    return {name: value for name, value in ((TRACEPARENT, hop.traceparent), (TRACESTATE, hop.tracestate)) if value}
