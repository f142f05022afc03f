"""Every setting, with its default, range and meaning. Frozen: resolved once, before anything is built."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tidegate.cli.ray_section import OnRayKind, RaySettings, RayStrategy
from tidegate.cli.telemetry_section import TelemetrySettings
from tidegate.engine.options import KvType, PoolingChoice


def _number(text: str, *, ge: float, le: float | None = None) -> Meta:
    return Meta(ge=ge, le=le, description=text)


def _text(text: str) -> Meta:
    return Meta(description=text)


EngineKind = Literal["llama", "ray", "scripted", "simulated", "sglang", "vllm", "vllm-http"]


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Listeners, processes and how long things may take."""

    host: Annotated[str, _text("address of the public listener")] = "127.0.0.1"
    port: Annotated[int, _number("port of the public listener; 0 takes a free one", ge=0, le=65535)] = 8000
    admin_host: Annotated[str, _text("address of the admin listener")] = "127.0.0.1"
    admin_port: Annotated[int, _number("port of the admin listener; 0 takes a free one", ge=0, le=65535)] = 9464
    workers: Annotated[int, _number("server processes that share the port and the engine", ge=1, le=64)] = 1
    http: Annotated[Literal["granian", "uvicorn"], _text("HTTP server that carries the application")] = "granian"
    heartbeat_s: Annotated[float, _number("silence after which a stream gets a comment line", ge=0.001)] = 15.0
    status_hold_s: Annotated[float, _number("how long a stream's status waits for the first output", ge=0.001)] = 10.0
    slow_client_timeout_s: Annotated[
        float, _number("a stream that accepts nothing for so long is closed", ge=0.001)
    ] = 30.0
    unsent_bytes: Annotated[int, _number("unsent text of a reply at which the engine is held", ge=1024)] = 262_144
    body_timeout_s: Annotated[float, _number("how long a request body may take to arrive", ge=0.001)] = 30.0
    drain_timeout_s: Annotated[float, _number("how long running requests may go on after SIGTERM", ge=0)] = 60.0
    drain_delay_s: Annotated[
        float, _number("how long an idle server still answers after SIGTERM, so that balancers see /readyz", ge=0)
    ] = 0.0
    state_dir: Annotated[str | None, _text("folder for keys and answers; ~/.local/state/tidegate if absent")] = None
    send_buffer_bytes: Annotated[int, _number("SO_SNDBUF of accepted sockets; Linux doubles it", ge=1024)] = 131_072


class AuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may call. Keys are made with `tidegate keys create`; once one exists, every route needs one."""

    keys_file: Annotated[str | None, _text("SQLite file with digests of keys; in the state folder if absent")] = None
    no_auth: Annotated[bool, _text("serve without keys on an address that others can reach")] = False
    admin_token_file: Annotated[str | None, _text("file with the credential of the admin listener")] = None
    open_metrics: Annotated[bool, _text("whether /metrics needs no credential")] = True


class TlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """TLS of the public listener; both files or none. They are read again when they change."""

    certificate_file: Annotated[str | None, _text("PEM file with the certificate and its chain")] = None
    key_file: Annotated[str | None, _text("PEM file with the private key")] = None


class CorsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Browsers of other origins. Off until an origin is named."""

    origins: Annotated[tuple[str, ...], _text("origins that may call, such as https://app.example; * for all")] = ()
    max_age_s: Annotated[int, _number("how long a browser may remember a preflight answer", ge=0, le=86400)] = 600


class DeadlineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Time that a request may take at most; callers may ask for less (CONTRACT.md section 11)."""

    max_ms: Annotated[Annotated[int, Meta(ge=1)] | None, _text("whole request")] = None
    first_token_ms: Annotated[Annotated[int, Meta(ge=1)] | None, _text("first token")] = None


class IdempotencySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger of idempotency keys (CONTRACT.md section 10)."""

    store: Annotated[Literal["sqlite", "redis", "off"], _text("where answers are recorded")] = "sqlite"
    file: Annotated[str | None, _text("SQLite file; in the state folder if absent")] = None
    redis_url: Annotated[str | None, _text("such as redis://127.0.0.1:6379/0; with store redis")] = None
    retention_s: Annotated[int, _number("how long an answer is replayed", ge=1)] = 86_400
    max_entries: Annotated[int, _number("keys that are remembered at once", ge=1)] = 100_000
    max_bytes: Annotated[int, _number("size of all recorded answers", ge=1024)] = 1_073_741_824
    max_answer_bytes: Annotated[int, _number("size of one recorded answer", ge=1024)] = 16_777_216


class QuotaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who counts the quotas of keys: requests at once, requests and tokens a minute."""

    store: Annotated[Literal["local", "redis"], _text("this server alone, or a Redis for several servers")] = "local"
    redis_url: Annotated[str | None, _text("such as redis://10.0.0.7:6379/0; idempotency.redis_url if absent")] = None
    timeout_ms: Annotated[int, _number("longest wait for Redis, for each question", ge=1, le=10_000)] = 250
    when_away: Annotated[
        Literal["local", "refuse"],
        _text("without an answer of Redis: each server counts alone, or keys with quotas get 503"),
    ] = "local"


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is served, under which names."""

    source: Annotated[
        str | None,
        _text(
            "GGUF path, package, or Hugging Face id; bundled if absent. Folder or id for vllm. Name in a remote engine"
        ),
    ] = None
    tokenizer: Annotated[
        str | None, _text("folder with tokenizer.json and the files beside it, for engines on other machines and vllm")
    ] = None
    served_model_name: Annotated[tuple[str, ...], _text("names that callers may use; the first is the answer's")] = ()
    chat_template: Annotated[str | None, _text("file with a chat template that replaces the model's own")] = None
    tool_format: Annotated[
        str, _text("how the model writes tool calls: a format's name, auto (by template), or none")
    ] = "auto"
    reasoning_format: Annotated[
        str, _text("how the model marks reasoning: a format's name, auto (by template), or none")
    ] = "auto"
    max_model_len: Annotated[
        Annotated[int, Meta(ge=16)] | None, _text("longest sequence, prompt and output, in tokens")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, _text("most tokens that one choice may generate")
    ] = None
    min_dimensions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        _text("fewest components that embeddings may be cut to, of a model trained for it; not cut if absent"),
    ] = None


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The engine process, the engine on another machine, or vLLM in this one."""

    kind: Annotated[
        EngineKind, _text("what generates tokens; sglang and vllm-http run elsewhere, ray places engines on machines")
    ] = "llama"
    replicas: Annotated[
        int, _number("engine processes of this model, each with its share of threads and memory", ge=1, le=64)
    ] = 1
    min_replicas: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None,
        _text("fewest of them, where their number follows the load; 1 if absent"),
    ] = None
    max_replicas: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None,
        _text("most of them: their number follows the load, beginning with replicas; fixed if absent"),
    ] = None
    url: Annotated[str | None, _text("where an engine on another machine is, such as http://10.0.0.5:8000")] = None
    api_key_file: Annotated[str | None, _text("file with the API key that such an engine wants")] = None
    revision: Annotated[str | None, _text("name of such an engine's weights, for the served revision")] = None
    options: Annotated[dict[str, Any], _text("further arguments of vLLM's AsyncEngineArgs, for vllm")] = msgspec.field(
        default_factory=dict
    )
    health_interval_s: Annotated[float, _number("how often such an engine's health is looked at", ge=0.01)] = 1.0
    stall_timeout_s: Annotated[float, _number("an engine that makes no step for so long is restarted", ge=0.1)] = 60.0
    restart_wait_s: Annotated[
        float, _number("wait before an engine that died is restarted; doubles up to 30 s", ge=0.001)
    ] = 0.25
    max_sequences: Annotated[int, _number("sequences that run at once; llama.cpp takes at most 256", ge=1, le=4096)] = (
        32
    )
    block_tokens: Annotated[int, _number("tokens in a block of the KV cache's accounts", ge=1, le=1024)] = 16
    num_blocks: Annotated[
        Annotated[int, Meta(ge=1)] | None, _text("size of the KV cache in blocks; fits memory if absent")
    ] = None
    max_step_tokens: Annotated[
        Annotated[int, Meta(ge=8, le=65536)] | None,
        _text("most tokens in one forward pass; chosen by device if absent"),
    ] = None
    prefill_chunk_tokens: Annotated[
        Annotated[int, Meta(ge=8)] | None,
        _text("most prompt tokens in a step beside decodes; found by calibration, else 64, if absent"),
    ] = None
    calibrate: Annotated[
        bool, _text("time threads and chunks for up to 3 s at the first start with a model, and remember them")
    ] = True
    threads: Annotated[Annotated[int, Meta(ge=1)] | None, _text("threads of the forward pass; chosen if absent")] = None
    gpu_layers: Annotated[
        Annotated[int, Meta(ge=0)] | None, _text("layers on the GPU; all that fit a GPU build if absent")
    ] = None
    main_gpu: Annotated[int, _number("GPU that holds what is not split", ge=0)] = 0
    tensor_split: Annotated[tuple[float, ...], _text("share of the model on each GPU")] = ()
    flash_attention: Annotated[Literal["auto", "on", "off"], _text("flash attention in the forward pass")] = "auto"
    kv_layout: Annotated[Literal["auto", "per_sequence", "unified"], _text("layout of the KV cache")] = "auto"
    kv_type_k: Annotated[KvType, _text("type of cached keys")] = "f16"
    kv_type_v: Annotated[KvType, _text("type of cached values")] = "f16"
    speculative: Annotated[
        Literal["off", "prompt_lookup"], _text("guess tokens ahead; with repeatable the output is the same")
    ] = "off"
    max_draft_tokens: Annotated[int, _number("tokens guessed for one sequence in a step", ge=1, le=64)] = 5
    repeatable: Annotated[
        bool, _text("same bits whatever shares the batch; slower, CPU only, kv_layout per sequence")
    ] = False
    prefix_cache: Annotated[
        bool, _text("keep what prompts have computed for others that begin alike, within a key and cache_salt")
    ] = True
    embeddings: Annotated[
        Literal["auto", "on", "off"], _text("whether texts are read for vectors; where model and memory allow if auto")
    ] = "auto"
    pooling: Annotated[PoolingChoice, _text("how hidden states become one vector; as the model says if auto")] = "auto"
    embedding_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        _text("longest text that is read for a vector; the engine's choice if absent"),
    ] = None
    simulated_model: Annotated[
        Literal["successor", "hash", "encoder"], _text("what the simulated engine computes; an encoder only reads")
    ] = "successor"
    simulated_labels: Annotated[
        tuple[str, ...], _text("labels of the simulated engine's head, where it pools by rank")
    ] = ()
    simulated_cost: Annotated[bool, _text("whether the simulated engine takes the declared time")] = False
    ray_engine: Annotated[OnRayKind, _text("what each engine on Ray is")] = "llama"
    ray_num_cpus: Annotated[
        float, _number("processors that Ray keeps for one; its threads, where none are set", ge=0)
    ] = 1.0
    ray_num_gpus: Annotated[float, _number("GPUs that Ray keeps for one", ge=0)] = 0.0
    ray_memory_bytes: Annotated[
        Annotated[int, Meta(ge=1)] | None, _text("memory that Ray keeps for one, and that it plans with")
    ] = None
    ray_resources: Annotated[tuple[str, ...], _text("other resources of the cluster, each as NAME=NUMBER")] = ()
    ray_bundles: Annotated[
        tuple[str, ...],
        _text("one engine over several places, such as CPU=3 GPU=1 for each; the first holds the actor"),
    ] = ()
    ray_strategy: Annotated[RayStrategy, _text("how bundles lie on machines")] = "PACK"
    ray_max_restarts: Annotated[
        Annotated[int, Meta(ge=0)] | None, _text("how often Ray itself restarts one that died; always if absent")
    ] = None

    @property
    def most_replicas(self) -> int:
        """How many there are at most."""
        return self.max_replicas or self.replicas


class PoolSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several engines of one model: who gets a request, and what happens to an engine that fails."""

    routing: Annotated[
        Literal["least_tokens", "prefix_first"],
        _text("least work first, or the engine that has read the prompt's beginning"),
    ] = "least_tokens"
    load_factor: Annotated[
        float, _number("work of an engine over the mean up to which prefix_first prefers it", ge=1, le=100)
    ] = 1.25
    max_moves: Annotated[
        int, _number("how often a request without output may go to another engine when its own is lost", ge=0, le=8)
    ] = 1
    eject_after: Annotated[int, _number("refusals in a row that eject an engine", ge=1, le=1000)] = 3
    eject_wait_s: Annotated[
        float, _number("how long an engine that failed is left out; doubles each time in a row", ge=0.001, le=3600)
    ] = 0.5
    eject_max_wait_s: Annotated[float, _number("up to this", ge=0.001, le=3600)] = 30.0
    rolling: Annotated[
        bool, _text("serve different revisions under one name for a while; every answer names its own")
    ] = False
    scale_up_tokens: Annotated[
        int, _number("prompt tokens without output, for each engine, beyond which one is added", ge=1)
    ] = 4096
    scale_down_tokens: Annotated[
        int, _number("such tokens for each engine that would remain, up to which one retires", ge=0)
    ] = 512
    scale_up_wait_s: Annotated[float, _number("for how long, before an engine is added", ge=0, le=86400)] = 10.0
    scale_down_wait_s: Annotated[float, _number("for how long, before an engine retires", ge=0, le=86400)] = 300.0


class GrammarSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who enforces schemas and grammars (CONTRACT.md section 9)."""

    backend: Annotated[str, _text("llguidance, xgrammar, a registered backend, or none")] = "llguidance"
    required: Annotated[bool, _text("refuse to start when the backend cannot serve this tokenizer")] = False
    cache_entries: Annotated[int, _number("compiled grammars that are kept", ge=1)] = 1024
    cache_bytes: Annotated[int, _number("about how much memory they may hold", ge=1_048_576)] = 268_435_456
    compile_threads: Annotated[int, _number("grammars that compile at once", ge=1, le=64)] = 2


class AdmissionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much may wait."""

    queue_depth: Annotated[int, _number("choices that may wait beyond those that run", ge=0)] = 256
    queued_tokens: Annotated[int, _number("prompt tokens that may wait for their first output", ge=1)] = 1_048_576
    queue_deadline_ms: Annotated[int, _number("longest wait for a permit; then 503 no_capacity", ge=1)] = 30_000
    kv_overcommit: Annotated[float, _number("peak KV blocks of running requests over all blocks", ge=1)] = 4.0
    policy: Annotated[Literal["priority", "fcfs"], _text("who goes first; fcfs: priorities do not count")] = "priority"
    priority_step_s: Annotated[
        float, _number("seconds in line that one step of priority is worth: nobody waits for ever", ge=0.001, le=3600)
    ] = 1.0
    queue_full_status: Annotated[Literal[429, 503], _text("HTTP status of a full queue")] = 429


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on one request, by their published names (CONTRACT.md section 12)."""

    body_bytes: Annotated[int, _number("bytes of a request body", ge=1024)] = 32 * 1024 * 1024
    pending_body_bytes: Annotated[int, _number("bytes of all bodies that are being read", ge=1024)] = 512 * 1024 * 1024
    json_depth: Annotated[int, _number("nesting of a request body", ge=4, le=512)] = 128
    messages: Annotated[int, _number("messages of a chat", ge=1)] = 4096
    prompts: Annotated[int, _number("prompts of a completion", ge=1)] = 256
    choices: Annotated[int, _number("choices of a request, over all its prompts", ge=1, le=128)] = 128
    inputs: Annotated[int, _number("texts, pairs or documents that one request has read", ge=1, le=65_536)] = 2048
    schema_bytes: Annotated[int, _number("bytes of a schema or grammar that output is held to", ge=64, le=262_144)] = (
        262_144
    )
    schema_depth: Annotated[int, _number("nesting of such a schema", ge=1, le=64)] = 64
    grammar_compile_ms: Annotated[int, _number("time to compile one", ge=1, le=60_000)] = 2000
    template_ms: Annotated[int, _number("time of a chat template", ge=1)] = 1000
    template_bytes: Annotated[int, _number("size of a rendered chat template", ge=1024)] = 32 * 1024 * 1024


class ApiSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Choices that the contract leaves to the operator."""

    unknown_fields: Annotated[Literal["report", "reject", "ignore"], _text("what unknown body fields do")] = "report"
    reasoning_field: Annotated[
        Literal["reasoning_content", "reasoning"], _text("member of messages and deltas that carries reasoning")
    ] = "reasoning_content"


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is written to standard error. Never prompts, never keys."""

    access: Annotated[bool, _text("one line for each request")] = True
    level: Annotated[Literal["debug", "info", "warning", "error"], _text("least important line that is written")] = (
        "info"
    )
    format: Annotated[
        Literal["auto", "json", "console"], _text("lines of JSON, or for people; by terminal if auto")
    ] = "auto"


class EngineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[engines]]` table: what it says, over what `[model]` and `[engine]` say for all."""

    name: str
    model: ModelSettings
    engine: EngineSettings


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All sections of `tidegate.toml`, and its `[[engines]]` tables."""

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    tls: TlsSettings = TlsSettings()
    cors: CorsSettings = CorsSettings()
    model: ModelSettings = ModelSettings()
    engine: EngineSettings = EngineSettings()
    pool: PoolSettings = PoolSettings()
    ray: RaySettings = RaySettings()
    grammar: GrammarSettings = GrammarSettings()
    admission: AdmissionSettings = AdmissionSettings()
    deadlines: DeadlineSettings = DeadlineSettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    quotas: QuotaSettings = QuotaSettings()
    limits: LimitSettings = LimitSettings()
    api: ApiSettings = ApiSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    engines: tuple[EngineEntry, ...] = ()


SECTIONS: dict[str, type[msgspec.Struct]] = {
    field.name: type(field.default) for field in msgspec.structs.fields(Settings) if field.name != "engines"
}


def describe(section: str, key: str) -> str:
    """Returns a setting's meaning in a phrase."""
    for field in msgspec.structs.fields(SECTIONS[section]):
        if field.name == key:
            for extra in getattr(field.type, "__metadata__", ()):
                if isinstance(extra, Meta) and extra.description:
                    return extra.description
    return ""
