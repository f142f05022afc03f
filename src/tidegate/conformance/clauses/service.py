"""Rules of how a server behaves over time and under load, of both contracts. Name: (the rule in our words, source)."""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"

OPENAI_SERVICE: Mapping[str, tuple[str, str]] = {
    "http.closure": (
        "Who serves connections watches for their closing and reclaims what they held.",
        "RFC 9112, section 9.5",
    ),
    "http.concurrency": (
        "Requests on different connections are independent of each other: one that is slow does not hold up others.",
        "RFC 9110, section 3.3 (requests are stateless and understood in isolation); RFC 9112, section 9.4",
    ),
    "http.framing": (
        "A message's content has the length that its framing says; a request is one message however it is cut up, and "
        "a response that lacks content is incomplete.",
        "RFC 9112, sections 6 and 8",
    ),
    "isolation.own": (
        "An answer is the answer to its own request: made from its messages, under its parameters, with its own id.",
        f"{_SPEC}, createChatCompletion and CreateChatCompletionResponse.id",
    ),
    "overload.answer": (
        "A request that is taken is answered whole; one that is not is refused with 429 or 503 and an error object.",
        f"{_SPEC}, responses and ErrorResponse of createChatCompletion; RFC 9110, section 15.6.4",
    ),
}

TIDEGATE_SERVICE: Mapping[str, tuple[str, str]] = {
    "admin.acts": (
        "The admin listener answers its routes only with their method, takes no unknown member, and says what it did.",
        "CONTRACT.md sections 1 and 3",
    ),
    "admin.credential": ("The admin listener has its own credential.", "CONTRACT.md section 1"),
    "admin.health": (
        "`/healthz` and `/readyz` tell whether the process is alive and ready, without a credential.",
        "CONTRACT.md section 1",
    ),
    "admin.views": (
        "`/metrics`, `/admin/v1/requests` and `/admin/v1/engine` tell what runs.",
        "CONTRACT.md section 1",
    ),
    "contract.document": (
        "`GET /v1/contract` tells the contract's version, the served models with revision, limits, policy of unknown "
        "fields, endpoints and errors; what it tells is what the server does.",
        "CONTRACT.md section 14",
    ),
    "contract.limits": (
        "A limit that fires is named in `error.limit`, with the value that the contract page lists.",
        "CONTRACT.md sections 3 and 12",
    ),
    "drain.order": (
        "A drain makes the server unready, and refuses new requests with 503 `server_draining` and `Retry-After`; "
        "running requests go on to their end.",
        "CONTRACT.md sections 1, 3 and 5",
    ),
    "isolation.request_id": (
        "`X-Request-Id` is the caller's name for tracing: two live requests may share it, and each gets it back.",
        "CONTRACT.md section 2",
    ),
    "cancel.baseline": (
        "When a client has gone, its requests end by the engine's next step and blocks return to the baseline count.",
        "CONTRACT.md section 11",
    ),
    "deadlines.effective": (
        "The effective deadline is the least of header, body field, key policy and server maximum; one that is met "
        "changes nothing.",
        "CONTRACT.md section 11",
    ),
    "deadlines.expiry": (
        "A deadline that passes ends the request: 504 before the status is sent, else one error event "
        "`deadline_exceeded` without finish and `[DONE]`; what it held is freed.",
        "CONTRACT.md sections 3, 5 and 11",
    ),
    "deadlines.values": ("Deadlines are whole milliseconds, 1 or more; otherwise 400.", "CONTRACT.md sections 2 and 4"),
    "deadlines.veto": (
        "A deadline that cannot be met is 504, not to be retried, before any work and without tokens.",
        "CONTRACT.md sections 3 and 11",
    ),
    "idempotency.afresh": (
        "A key whose request was refused before execution, was cancelled, or failed in a curable way runs afresh.",
        "CONTRACT.md section 10",
    ),
    "idempotency.key": (
        "`Idempotency-Key` is 1 to 255 visible ASCII characters, quoted or not; otherwise 400.",
        "CONTRACT.md section 10",
    ),
    "idempotency.live": (
        "The same request while the first is live: 409 `idempotency_key_in_use` with `Retry-After`; never two runs.",
        "CONTRACT.md section 10",
    ),
    "idempotency.replay": (
        "The same key, method, path and canonical JSON get the recorded status and bytes with `Idempotent-Replayed: "
        "true`, without engine work and without being counted again.",
        "CONTRACT.md section 10",
    ),
    "idempotency.reuse": (
        "The same key with another request: 422 `idempotency_key_reuse`, not to be retried.",
        "CONTRACT.md section 10",
    ),
    "listeners.public": (
        "`/healthz` says that the process is alive and `/health` that it is ready, on the public listener.",
        "CONTRACT.md section 1",
    ),
    "overload.refusal": (
        "429 `queue_full` and 503 `no_capacity` carry `Retry-After` in whole seconds, 1 to 120, and may be retried.",
        "CONTRACT.md sections 2 and 3",
    ),
    "streaming.backpressure": (
        "While a client is behind, deltas merge and no text is lost; at 256 KiB unsent its request waits, no other.",
        "CONTRACT.md section 5",
    ),
}
