"""What `/v1/contract` says about the server's settings. Known to whoever wires the server."""

from dataclasses import dataclass
from typing import Literal

from tidegate.inference.model_info import ModelInfo


@dataclass(frozen=True, slots=True)
class IdempotencyFacts:
    """The ledger of idempotency keys. `when_full` says what happens to a new key while there is no room."""

    store: str
    retention_s: int
    max_entries: int
    max_bytes: int
    max_answer_bytes: int
    when_full: str


@dataclass(frozen=True, slots=True)
class EngineFact:
    """One of several engines of a model; `model` is None before it has been ready for the first time."""

    name: str
    is_ready: bool
    model: ModelInfo | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """`idempotency` is None where retries are not recognised. `queue_full_status` is 429 or 503."""

    version: str = "0"
    queue_depth: int = 256
    queued_tokens: int = 1_048_576
    queue_deadline_ms: int = 30_000
    queue_full_status: int = 429
    header_bytes: int = 64 * 1024
    uri_bytes: int = 8 * 1024
    pending_body_bytes: int = 512 * 1024 * 1024
    grammar_compile_ms: int = 2000
    template_ms: int = 1000
    template_bytes: int = 32 * 1024 * 1024
    status_hold_s: float = 10.0
    heartbeat_s: float = 15.0
    unsent_bytes: int = 262_144
    slow_client_timeout_s: float = 30.0
    deadline_max_ms: int | None = None
    first_token_max_ms: int | None = None
    sampling_defaults: Literal["openai", "model"] = "openai"
    idempotency: IdempotencyFacts | None = None
