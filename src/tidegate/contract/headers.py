"""Names of the headers that we read or write (CONTRACT.md section 2), and the contract's version.

Incoming names are in lower case, as HTTP hands them over; outgoing ones in their usual spelling.
"""

CONTRACT_VERSION = "1.0"

IN_AUTHORIZATION = "authorization"
IN_REQUEST_ID = "x-request-id"
IN_IDEMPOTENCY_KEY = "idempotency-key"
IN_DEADLINE_MS = "x-deadline-ms"
IN_FIRST_TOKEN_DEADLINE_MS = "x-first-token-deadline-ms"
IN_PRIORITY = "x-priority"
IN_TRACEPARENT = "traceparent"
IN_TRACESTATE = "tracestate"

REQUEST_ID = "X-Request-Id"
CONTRACT = "Tidegate-Contract"
SERVED_REVISION = "Tidegate-Served-Revision"
IGNORED_FIELDS = "Tidegate-Ignored-Fields"
RETRY_AFTER = "Retry-After"
SHOULD_RETRY = "X-Should-Retry"
IDEMPOTENT_REPLAYED = "Idempotent-Replayed"
ALLOW = "Allow"
CONNECTION = "Connection"
WWW_AUTHENTICATE = "WWW-Authenticate"
CONTENT_TYPE = "Content-Type"
CACHE_CONTROL = "Cache-Control"
ACCEL_BUFFERING = "X-Accel-Buffering"
DEPRECATION = "Deprecation"
SUNSET = "Sunset"

JSON_TYPE = "application/json"
EVENT_STREAM_TYPE = "text/event-stream; charset=utf-8"
