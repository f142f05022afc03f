"""GET /v1/contract: what this server promises to whoever asks, in a form for programs (CONTRACT.md section 14).

A value that is null does not bound, or is not known yet because the engine is starting. Members may be added in a later
minor version of the contract; none goes away within a major one.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

SCHEMA_ID = "urn:tidegate:contract:1.0"
"""`$id` of the published schema, docs/contract.schema.json."""

FieldUseName = Literal["acts", "no_effect", "not_served"]
LimitUnit = Literal["bytes", "count", "depth", "milliseconds", "tokens"]
RetryAdvice = Literal["never", "later", "if_nothing_sent"]
ReadingMethod = Literal["head", "likelihood", "cosine"]
LimitScope = Literal["request", "key", "server"]


class FieldUse(Struct, frozen=True, kw_only=True):
    """`acts`: changes the answer; a `reason` then says for which values only. `no_effect`: accepted, and nothing
    follows. `not_served`: accepted only with values that ask for nothing, refused otherwise; `reason` says why.
    """

    use: FieldUseName
    reason: str | UnsetType = UNSET


class ServedEndpoint(Struct, frozen=True, kw_only=True):
    """A route that takes a body, and that the model serves, with every field of that body."""

    method: str
    path: str
    streams: bool
    fields: dict[str, FieldUse]


class RevisionParts(Struct, frozen=True, kw_only=True):
    """What the served revision is a digest of. A format or backend is null where none is in use."""

    weights: str | None
    tokenizer: str
    chat_template: str
    tool_format: str | None
    reasoning_format: str | None
    grammar_backend: str | None
    engine: str | None


class TokenCounts(Struct, frozen=True, kw_only=True):
    """`exact`: usage and /v1/tokenize count with the served model's own tokenizer, and agree with each other."""

    exact: bool
    counted_by: Literal["served_tokenizer"] = "served_tokenizer"


class DescribedReading(Struct, frozen=True, kw_only=True):
    """What the model makes of texts that it only reads. `pooling`: how hidden states become one vector, null where
    they do not; `dimensions` of an embedding, which may be cut to `min_dimensions`, null where it may not be cut.
    `scores_by` and `classifies_by`: `head`, `likelihood` or `cosine`, null where it does not; `labels` are the head's.
    """

    pooling: str | None
    dimensions: int | None
    min_dimensions: int | None
    max_input_tokens: int | None
    scores_by: ReadingMethod | None
    classifies_by: ReadingMethod | None
    labels: list[str]


class DescribedEngine(Struct, frozen=True, kw_only=True):
    """One of several engines of a model. `revision` is null before it has been ready for the first time."""

    name: str
    ready: bool
    revision: str | None


class DescribedModel(Struct, frozen=True, kw_only=True):
    """One served model. `id` is the name that answers carry; `aliases` are the other names that requests may use."""

    id: str
    aliases: list[str]
    revision: str | None
    revision_parts: RevisionParts
    context_length: int | None
    vocabulary_size: int | None
    input_modalities: list[str]
    output_modalities: list[str]
    reasoning_field: str | None
    """The member of messages and deltas that carries reasoning; null where the model's output has none."""
    token_counts: TokenCounts
    reading: DescribedReading | None
    """Null while the engine starts."""
    endpoints: list[ServedEndpoint]
    limits: dict[str, "DescribedLimit"]
    """Those in which this model differs from the `limits` beside `models`."""
    structured_output: "StructuredOutput"
    engines: list[DescribedEngine]
    """Where there are several, or may be. Every answer names the revision of the one that answered."""


class DescribedRoute(Struct, frozen=True, kw_only=True):
    """A route of the public listener. `needs_key`: once keys are configured."""

    method: str
    path: str
    needs_key: bool


class DescribedLimit(Struct, frozen=True, kw_only=True):
    """`value` is null where there is no bound. `enforced` is false where what it bounds is not served, for `reason`.
    `code` is the error code of a request that is over it; null where it is not enforced.
    """

    value: int | None
    unit: LimitUnit
    scope: LimitScope
    enforced: bool
    code: str | None
    reason: str | UnsetType = UNSET


class DescribedError(Struct, frozen=True, kw_only=True):
    """`retry`: `never`, `later` (after `Retry-After`), or `if_nothing_sent` (when no output has been received)."""

    status: int
    type: str
    retry: RetryAdvice


class DescribedHeader(Struct, frozen=True, kw_only=True):
    """A header of requests that is not served is refused where it would matter, with 422."""

    served: bool
    meaning: str


class Headers(Struct, frozen=True, kw_only=True):
    """By name."""

    request: dict[str, DescribedHeader]
    response: dict[str, DescribedHeader]


class UnknownFields(Struct, frozen=True, kw_only=True):
    """What a body field does that no schema has. `refused` lists those that are refused under every policy, because
    dropping them would drop a constraint or an input; the value says what to use instead.
    """

    policy: Literal["report", "reject", "ignore"]
    refused: dict[str, str]


class SamplingDefaults(Struct, frozen=True, kw_only=True):
    """Where the defaults of absent sampling fields come from, and what they are."""

    source: Literal["openai", "model"]
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float


class StructuredOutput(Struct, frozen=True, kw_only=True):
    """`enforced_keywords` are the JSON Schema keywords that output is held to; a schema with any other is refused.

    `enforced_formats` are the values of `format` that are. `backend` is who enforces, with its version.
    """

    served: bool
    backend: str | None
    required: bool
    kinds: list[str]
    enforced_keywords: list[str]
    enforced_formats: list[str] | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Idempotency(Struct, frozen=True, kw_only=True):
    """`when_full`: what happens to a new key while the ledger has no room."""

    served: bool
    scope: Literal["key"] = "key"
    store: str | None
    retention_s: int | None
    max_entries: int | None
    max_bytes: int | None
    max_answer_bytes: int | None
    when_full: str | None


class Deadlines(Struct, frozen=True, kw_only=True):
    """The greatest times that a request may take, from receipt; null where the server sets none."""

    served: bool
    max_ms: int | None
    first_token_max_ms: int | None
    key_max_ms: int | None


class Streaming(Struct, frozen=True, kw_only=True):
    """How streams wait and how far a slow reader may fall behind (CONTRACT.md section 5)."""

    status_hold_s: float
    heartbeat_s: float
    unsent_bytes: int
    slow_client_timeout_s: float


class Caller(Struct, frozen=True, kw_only=True):
    """What the key that asked may do. `models` and `routes` are null where it may use all."""

    name: str
    models: list[str] | None
    routes: list[str] | None
    priority_min: int
    priority_max: int


class SelfDescription(Struct, frozen=True, kw_only=True):
    """The whole answer. `schema` names the JSON Schema that this answer is an instance of."""

    object: Literal["contract"] = "contract"
    schema: str = SCHEMA_ID
    contract: str
    server: str
    caller: Caller
    models: list[DescribedModel]
    default_model: str | None
    """Who answers a request that names no model; null where the caller may use none. `limits` and `structured_output`
    are those of this model; the others say in which they differ.
    """
    routes: list[DescribedRoute]
    limits: dict[str, DescribedLimit]
    unknown_fields: UnknownFields
    sampling_defaults: SamplingDefaults
    structured_output: StructuredOutput
    idempotency: Idempotency
    deadlines: Deadlines
    streaming: Streaming
    headers: Headers
    errors: dict[str, DescribedError]
