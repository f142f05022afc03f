"""What a request to a remote engine says of where it comes from, as HTTP headers. Pure.

`X-Request-Id` is the engine's own name for the exchange, never the caller's: vLLM keys requests by this header, before
the id in the body, and callers may give one id to two live requests. Theirs goes as `X-Client-Request-Id`, which
nothing is keyed by.
"""

from tidegate.inference.hop import HopLabels

REQUEST_ID, CLIENT_ID = "X-Request-Id", "X-Client-Request-Id"
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"


def hop_headers(hop: HopLabels | None, remote_id: str) -> tuple[tuple[str, str], ...]:
    """Returns the headers of one exchange; `remote_id` names it in the engine."""
    headers = [(REQUEST_ID, remote_id)]
    if hop is not None:
        given = ((CLIENT_ID, hop.client_id), (TRACEPARENT, hop.traceparent), (TRACESTATE, hop.tracestate))
        headers += [(name, value) for name, value in given if value]
    return tuple(headers)
