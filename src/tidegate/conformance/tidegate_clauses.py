"""Rules of Tidegate's own contract. Name: (the rule in our words, its section)."""

from collections.abc import Mapping

TIDEGATE: Mapping[str, tuple[str, str]] = {
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
    "headers.contract": ("`Tidegate-Contract` is `1.MINOR`, on every response.", "CONTRACT.md section 2"),
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
