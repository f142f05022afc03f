"""What a request is called on its way, for whoever sees it next: never for authority, nor for the work itself."""

import msgspec


class HopLabels(msgspec.Struct, frozen=True, array_like=True):
    """`traceparent` and `tracestate` are W3C Trace Context as the next hop shall have them, "" for none.

    `client_id` is the caller's own `X-Request-Id`, or the server's where there was none: two live requests may share
    it. All are visible ASCII and blanks, checked where they came in.
    """

    traceparent: str = ""
    tracestate: str = ""
    client_id: str = ""
