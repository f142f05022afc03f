"""Every metric of ours by name: what it is, what it means, how it is split. `docs/metrics.md` lists the same.

Names follow what operators of inference servers know, under our prefix. Times are seconds; ratios are of two counters
and left to the query.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family. A counter's samples have the suffix `_total`, an info's `_info`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def sample_name(self) -> str:
        """The name that a query uses; a histogram's samples add `_bucket`, `_sum` and `_count` to it."""
        suffix = {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")
        return self.name + suffix


def _metric(name: str, kind: Kind, text: str, *labels: str) -> Metric:
    return Metric("tidegate_" + name, kind, text, labels)


_COUNTER, _GAUGE, _HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

ENGINE: tuple[Metric, ...] = (
    _metric("engine_up", _GAUGE, "1 while the engine is ready, else 0."),
    _metric("engine_epoch", _GAUGE, "How often an engine process has been started; the current one's number."),
    _metric("engine_restarts", _COUNTER, "Engine processes started in place of one that ended."),
    _metric("engine_stalls", _COUNTER, "Engine processes that were killed because they hung."),
    _metric("stale_outputs_dropped", _COUNTER, "Engine outputs that came after their request had ended."),
    _metric("poison_suspects", _GAUGE, "Requests that an engine died with, and that have not completed since."),
    _metric("poison_refusals", _COUNTER, "Requests refused because engines died with them again and again."),
    _metric("requests_running", _GAUGE, "Sequences in the engine's batch; each choice of a request is one."),
    _metric("requests_waiting", _GAUGE, "Sequences that wait in the engine."),
    _metric("requests_constrained", _GAUGE, "Sequences in the engine that have a grammar."),
    _metric("requests_held", _GAUGE, "Sequences not scheduled: their reader is behind, or their grammar compiles."),
    _metric("kv_blocks", _GAUGE, "KV cache blocks by state: free, cached, used.", "state"),
    _metric("kv_cache_usage_ratio", _GAUGE, "Used KV cache blocks as a share of all, 0 to 1."),
    _metric("prefix_cache_queries", _COUNTER, "Prompt tokens looked up in the prefix cache."),
    _metric("prefix_cache_hits", _COUNTER, "Prompt tokens found in the prefix cache."),
    _metric("preemptions", _COUNTER, "Sequences that gave up their blocks to others."),
    _metric("engine_steps", _COUNTER, "Steps of the engine."),
    _metric("engine_prefill_tokens", _COUNTER, "Prompt tokens computed."),
    _metric("engine_decode_tokens", _COUNTER, "Generated tokens computed as input of a step."),
    _metric("engine_output_tokens", _COUNTER, "Tokens generated, delivered or not."),
    _metric("spec_decode_num_drafts", _COUNTER, "Rows of a step that carried draft tokens."),
    _metric("spec_decode_num_draft_tokens", _COUNTER, "Tokens guessed and computed ahead of the model."),
    _metric("spec_decode_num_accepted_tokens", _COUNTER, "Guessed tokens that were what came then."),
    _metric("engine_last_step_seconds", _GAUGE, "Duration of the engine's latest step."),
    _metric("engine_last_step_tokens", _GAUGE, "Tokens computed in the engine's latest step."),
    _metric("engine_prefill_steps", _COUNTER, "Steps that carried prompt tokens."),
    _metric("engine_prefill_step_seconds", _COUNTER, "Time spent in steps that carried prompt tokens."),
    _metric("engine_decode_steps", _COUNTER, "Steps of decode rows only."),
    _metric("engine_decode_step_seconds", _COUNTER, "Time spent in steps of decode rows only."),
    _metric("engine_grammar_compiles", _COUNTER, "Grammars that the engine compiled, or refused to."),
    _metric("engine_grammar_compile_seconds", _COUNTER, "Time spent compiling them, beside the steps."),
    _metric("engine_grammar_compile_failures", _COUNTER, "Grammars that the engine refused to compile."),
    _metric("engine_grammar_cache_hits", _COUNTER, "Grammars that the engine had compiled already, or was compiling."),
    _metric("engine_grammar_masks", _COUNTER, "Masks that the engine wrote, one for each token of a constrained row."),
    _metric("engine_grammar_mask_seconds", _COUNTER, "Time spent in steps writing masks."),
    _metric("engine_pooled_prompts", _COUNTER, "Prompts that were only read, for a vector."),
    _metric("engine_pooled_tokens", _COUNTER, "Tokens of prompts that were only read, for a vector."),
    _metric("engine_pooled_batches", _COUNTER, "Batches of such prompts. They are no steps."),
    _metric("engine_pooled_batch_seconds", _COUNTER, "Time spent in them."),
)

POOL: tuple[Metric, ...] = (
    _metric("pool_engine_up", _GAUGE, "1 while this engine is ready, 0 while it is not.", "engine", "model"),
    _metric(
        "pool_engine_state",
        _GAUGE,
        "1 for the state of this engine: starting, ready, ejected, probing, draining, gone.",
        "engine",
        "model",
        "state",
    ),
    _metric("pool_engine_requests", _GAUGE, "Requests that this engine has.", "engine", "model"),
    _metric("pool_engine_outstanding_tokens", _GAUGE, "Tokens that this engine still owes.", "engine", "model"),
    _metric("pool_engine_submitted", _COUNTER, "Requests that were given to this engine.", "engine", "model"),
    _metric("pool_engine_lost", _COUNTER, "Requests that this engine refused or lost.", "engine", "model"),
    _metric("pool_engine_moved", _COUNTER, "Of those, the ones that another engine took over.", "engine", "model"),
    _metric("pool_engine_ejections", _COUNTER, "How often this engine was ejected.", "engine", "model"),
    _metric("pool_engine_prompt_tokens", _COUNTER, "Prompt tokens that were given to this engine.", "engine", "model"),
    _metric(
        "pool_engine_matched_tokens",
        _COUNTER,
        "Of those, the ones that were expected in its prefix cache.",
        "engine",
        "model",
    ),
)
"""Where there are several engines."""

ADMISSION: tuple[Metric, ...] = (
    _metric("admission_requests", _GAUGE, "Requests that hold a permit."),
    _metric("admission_sequences", _GAUGE, "Sequences of the requests that hold a permit."),
    _metric("admission_kv_blocks", _GAUGE, "Peak KV blocks of the requests that hold a permit."),
    _metric("admission_waiting_requests", _GAUGE, "Requests that wait for a permit."),
    _metric("admission_waiting_sequences", _GAUGE, "Sequences of the requests that wait for a permit."),
    _metric("admission_queued_tokens", _GAUGE, "Prompt tokens of requests without any output yet."),
    _metric("admission_key_slots", _GAUGE, "Requests under way of keys with a limit of concurrency."),
    _metric("admission_refusals", _COUNTER, "Requests that were refused a permit or a place, by reason.", "reason"),
    _metric("admission_withdrawals", _COUNTER, "Requests whose client left while they waited for a permit."),
    _metric("admission_predictions", _COUNTER, "First tokens that were predicted and came."),
    _metric("admission_late_predictions", _COUNTER, "First tokens that came later than predicted."),
    _metric("admission_prediction_error_seconds", _COUNTER, "Sum of how far off predicted first tokens were."),
)

REQUESTS: tuple[Metric, ...] = (
    _metric("requests_received", _COUNTER, "Requests to generating and tokenizing routes.", "route"),
    _metric("requests_refused", _COUNTER, "Requests answered with an error before engine work.", "route", "code"),
    _metric(
        "request_success",
        _COUNTER,
        "Requests that ended well, by finish reason; `read`: nothing was to be generated.",
        "finish_reason",
    ),
    _metric("aborts", _COUNTER, "Requests ended early, by cause: client_gone, slow_client, deadline, ...", "cause"),
    _metric("request_errors", _COUNTER, "Errors that callers got, by public error code.", "code"),
    _metric("requests_failed", _COUNTER, "Requests that failed after they had entered, by public error code.", "code"),
    _metric("retries_seen", _COUNTER, "Requests that their client marked as a retry.", "route"),
    _metric("http_requests", _COUNTER, "HTTP responses by route, method and status.", "route", "method", "status"),
    _metric("prompt_tokens", _COUNTER, "Prompt tokens of ended requests, cached ones included."),
    _metric("prompt_tokens_cached", _COUNTER, "Prompt tokens of ended requests that came from the prefix cache."),
    _metric("generation_tokens", _COUNTER, "Generated tokens of ended requests, aborted ones included."),
    _metric("tokens_delivered", _COUNTER, "Generated tokens handed on to replies, counted as they come."),
    _metric("key_requests", _COUNTER, "Ended requests by the name of the caller's key.", "key"),
    _metric("key_tokens", _COUNTER, "Tokens of ended requests by key and kind: prompt, generation.", "key", "kind"),
    _metric("time_to_first_token_seconds", _HISTOGRAM, "From receipt to the first token."),
    _metric("inter_token_latency_seconds", _HISTOGRAM, "From one token of a choice to the next."),
    _metric("queue_time_seconds", _HISTOGRAM, "From receipt to the engine's first work on the request."),
    _metric("e2e_request_latency_seconds", _HISTOGRAM, "From receipt to the end, of requests that ended well."),
    _metric("request_prompt_tokens", _HISTOGRAM, "Prompt tokens of a request."),
    _metric("request_generation_tokens", _HISTOGRAM, "Generated tokens of a request, all choices together."),
)

LEDGER: tuple[Metric, ...] = (
    _metric("idempotency_entries", _GAUGE, "Operations that the ledger remembers, running ones included."),
    _metric("idempotency_bytes", _GAUGE, "Size of the recorded answers, as stored."),
    _metric("idempotency_evictions", _COUNTER, "Answers forgotten before their time, to make room."),
)

IDEMPOTENCY: tuple[Metric, ...] = (
    _metric(
        "idempotency_claims",
        _COUNTER,
        "Requests with an idempotency key: fresh, replayed, in_use, reused, full, unavailable.",
        "outcome",
    ),
    _metric(
        "idempotency_ends",
        _COUNTER,
        "How fresh ones ended: recorded, released, too_large, not_recorded, superseded.",
        "outcome",
    ),
)

GRAMMARS: tuple[Metric, ...] = (
    _metric(
        "grammar_checks",
        _COUNTER,
        "Looks at constraints before admission, by kind: hit, joined, compiled, refused, timeout.",
        "kind",
        "outcome",
    ),
    _metric("grammar_compile_seconds", _HISTOGRAM, "Time of one compilation in the server."),
    _metric("grammar_cache_entries", _GAUGE, "Verdicts on constraints that are kept."),
    _metric("grammar_cache_bytes", _GAUGE, "About how much memory they hold."),
    _metric("grammar_cache_evictions", _COUNTER, "Verdicts forgotten to make room."),
    _metric("grammar_compiles_pending", _GAUGE, "Compilations that wait for a thread or run."),
    _metric("grammar_compiles_overdue", _GAUGE, "Compilations that run beyond their limit."),
)

QUOTAS: tuple[Metric, ...] = (
    _metric("quota_slots", _GAUGE, "Requests under way that this server has counted in the shared store."),
    _metric("quota_questions", _COUNTER, "Questions to the shared store: answered, unanswered.", "outcome"),
)
"""Where several servers share a store of quotas."""

TELEMETRY: tuple[Metric, ...] = (
    _metric("telemetry_waiting_requests", _GAUGE, "Ended requests whose spans wait for the exporter."),
    _metric(
        "telemetry_requests",
        _COUNTER,
        "Recorded requests by what became of their spans: exported, failed (not taken by the collector), dropped.",
        "outcome",
    ),
)

PROCESS: tuple[Metric, ...] = (
    _metric("event_loop_tasks", _GAUGE, "Tasks of the server's event loop."),
    _metric("event_loop_lag_seconds", _HISTOGRAM, "How late a timer of the server's event loop fires."),
)

BUILD = _metric("build", Kind.INFO, "Version of the server and of its Python.", "version", "python")

CATALOG: tuple[Metric, ...] = (
    *ENGINE,
    *POOL,
    *ADMISSION,
    *REQUESTS,
    *LEDGER,
    *IDEMPOTENCY,
    *GRAMMARS,
    *QUOTAS,
    *TELEMETRY,
    *PROCESS,
    BUILD,
)
