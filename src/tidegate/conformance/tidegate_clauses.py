"""Rules of Tidegate's own contract. Name: (the rule in our words, its section)."""

from collections.abc import Mapping

TIDEGATE: Mapping[str, tuple[str, str]] = {
    "cancel.baseline": (
        "When a client has gone, its requests end by the engine's next step and blocks return to the baseline count.",
        "CONTRACT.md section 11",
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
}
