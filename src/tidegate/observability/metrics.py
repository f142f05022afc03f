"""MetricsObserver: facts become numbers, and numbers become Prometheus metric families when somebody looks.

Counts of requests are kept here; the engine's and admission's accounts are read at scrape time. Nothing here takes a
lock: facts and scrapes come from the event loop's thread. A scrape from another thread would see a count that is at
most one fact old.

Every request that was received counts once under `requests_refused`, `request_success`, `aborts` or `requests_failed`,
or as replayed under `idempotency_claims`; the error code that its caller got, if any, counts under `request_errors` as
well.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)

from tidegate.observability import catalog
from tidegate.observability.catalog import Kind, Metric
from tidegate.observability.histogram import Histogram
from tidegate.observability.label_counter import OTHER, LabelCounter
from tidegate.observability.observer import EngineChanged, GrammarChecked, RequestEnded
from tidegate.observability.views import (
    AdmissionView,
    EngineRowView,
    EngineView,
    GaugesView,
    GrammarsView,
    LedgerView,
    QuotasView,
    TelemetryView,
)

SUCCESSES = frozenset({"stop", "length", "tool_calls", "content_filter", "read"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_WAITS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_GAPS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LATENCIES_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_LAGS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_TOKENS = tuple(float(2**power) for power in range(18))
BOUNDS = {
    "time_to_first_token_seconds": _WAITS_S,
    "inter_token_latency_seconds": _GAPS_S,
    "queue_time_seconds": _WAITS_S,
    "e2e_request_latency_seconds": _LATENCIES_S,
    "request_prompt_tokens": _TOKENS,
    "request_generation_tokens": _TOKENS,
    "event_loop_lag_seconds": _LAGS_S,
    "grammar_compile_seconds": _WAITS_S,
}

_READ_ELSEWHERE = frozenset({"tidegate_tokens_delivered", "tidegate_grammar_cache_evictions"})

Series = list[tuple[tuple[str, ...], float]]


class MetricsObserver:
    """Implements `Observer`, and collects for a registry of its own.

    `engine` and `admission` give current accounts and are called at every scrape; without `admission` or
    `ledger` its metrics are absent. `version` is the server's.
    """

    def __init__(
        self,
        engine: Callable[[], EngineView],
        admission: Callable[[], AdmissionView] | None = None,
        version: str = "",
        ledger: Callable[[], LedgerView] | None = None,
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._admission = admission
        self._build = {"version": version, "python": platform.python_version()}
        self._num_delivered = 0
        self.engines: Callable[[], Sequence[EngineRowView]] | None = None
        """Gives a row for each engine; None where there is only one, and their metrics absent."""
        self.grammars: Callable[[], GrammarsView] | None = None
        """Gives the accounts of compiled constraints; None where none are served, and their metrics absent."""
        self.telemetry: Callable[[], TelemetryView] | None = None
        """Gives the accounts of exported spans; None where none are, and their metrics absent."""
        self.quotas: Callable[[], QuotasView] | None = None
        """Gives the accounts of a shared store of quotas; None where there is none, and their metrics absent."""
        self.num_tasks: Callable[[], int] = lambda: 0
        """Counts the tasks of this process' event loop; asked at every scrape, on that loop."""
        self._counters = {
            metric.name: LabelCounter(len(metric.labels))
            for metric in (*catalog.REQUESTS, *catalog.IDEMPOTENCY, *catalog.GRAMMARS)
            if metric.kind is Kind.COUNTER and metric.name not in _READ_ELSEWHERE
        }
        for reason in SUCCESSES:
            self._count("request_success", reason, amount=0)
        self._histograms = {"tidegate_" + name: Histogram(bounds) for name, bounds in BOUNDS.items()}
        self._observe_gap = self._histograms["tidegate_inter_token_latency_seconds"].observe
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def _count(self, name: str, *labels: str, amount: int = 1) -> None:
        self._counters["tidegate_" + name].add(*labels, amount=amount)

    def _observe(self, name: str, value: float | None) -> None:
        if value is not None:
            self._histograms["tidegate_" + name].observe(value)

    def request_received(self, route: str, num_retries: int = 0) -> None:
        self._count("requests_received", route)
        if num_retries > 0:
            self._count("retries_seen", route)

    def request_refused(self, route: str, status: int, code: str) -> None:  # noqa: ARG002 the code implies it
        self._count("requests_refused", route, code)
        self._count("request_errors", code)

    def request_ended(self, facts: RequestEnded) -> None:
        if facts.outcome in SUCCESSES:
            self._count("request_success", facts.outcome)
            self._observe("e2e_request_latency_seconds", facts.duration_s)
        elif facts.outcome == "error":
            self._count("requests_failed", facts.code or "internal_error")
        elif facts.outcome != "replayed":
            self._count("aborts", facts.outcome)
        if facts.code is not None:
            self._count("request_errors", facts.code)
        self._count("prompt_tokens", amount=facts.num_prompt_tokens)
        self._count("prompt_tokens_cached", amount=facts.num_cached_tokens)
        self._count("generation_tokens", amount=facts.num_completion_tokens)
        if facts.key_name is not None:
            self._count("key_requests", facts.key_name)
            self._count("key_tokens", facts.key_name, "prompt", amount=facts.num_prompt_tokens)
            self._count("key_tokens", facts.key_name, "generation", amount=facts.num_completion_tokens)
        self._observe("queue_time_seconds", facts.queue_s)
        self._observe("time_to_first_token_seconds", facts.first_token_s)
        self._observe("request_prompt_tokens", facts.num_prompt_tokens)
        self._observe("request_generation_tokens", facts.num_completion_tokens)

    def tokens_delivered(self, num_tokens: int, gap_s: float | None) -> None:
        self._num_delivered += num_tokens
        if gap_s is not None and num_tokens:
            self._observe_gap(gap_s / num_tokens, num_tokens)

    def claim_answered(self, outcome: str) -> None:
        self._count("idempotency_claims", outcome)

    def claim_ended(self, outcome: str) -> None:
        self._count("idempotency_ends", outcome)

    def grammar_checked(self, facts: GrammarChecked) -> None:
        self._count("grammar_checks", facts.kind, facts.outcome)
        self._observe("grammar_compile_seconds", facts.compile_s)

    def engine_changed(self, facts: EngineChanged) -> None:
        """Takes nothing: the engine's state is read at scrape time."""

    def http_response(self, route: str, method: str, status: int) -> None:
        self._count("http_requests", route, method if method in METHODS else OTHER, str(status))

    def loop_lag(self, lag_s: float) -> None:
        """A timer of the event loop fired `lag_s` seconds late."""
        self._observe("event_loop_lag_seconds", lag_s)

    def describe(self) -> Iterable[Family]:
        """Yields every family without samples: the registry checks names with it."""
        return [_family(metric, [], None) for metric in catalog.CATALOG if metric.kind is not Kind.INFO]

    def collect(self) -> Iterator[Family]:
        """Yields every family with its current samples, in the order of the catalog."""
        engine = self._engine()
        series = _engine_series(engine, engine.gauges)
        if self.engines is not None:
            series.update(_pool_series(self.engines()))
        if self._admission is not None:
            series.update(_admission_series(self._admission()))
        if self._ledger is not None:
            series.update(_ledger_series(self._ledger()))
        if self.grammars is not None:
            series.update(_grammar_series(self.grammars()))
        if self.quotas is not None:
            series.update(_quota_series(self.quotas()))
        if self.telemetry is not None:
            series.update(_telemetry_series(self.telemetry()))
        series.update((name, counter.items()) for name, counter in self._counters.items())
        series["tidegate_event_loop_tasks"] = [((), float(self.num_tasks()))]
        series["tidegate_tokens_delivered"] = [((), float(self._num_delivered))]
        for metric in catalog.CATALOG:
            if metric.kind is Kind.INFO:
                yield InfoMetricFamily(metric.name, metric.help, self._build)
            elif metric.name in series or metric.name in self._histograms:
                yield _family(metric, series.get(metric.name, []), self._histograms.get(metric.name))


def _family(metric: Metric, series: Series, histogram: Histogram | None) -> Family:
    if metric.kind is Kind.HISTOGRAM:
        buckets = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        if histogram is not None:
            buckets.add_metric((), histogram.cumulative(), histogram.sum)
        return buckets
    make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=metric.labels)
    for labels, value in series:
        family.add_metric(labels, value)
    return family


def _engine_series(engine: EngineView, gauges: GaugesView) -> dict[str, Series]:
    """Counts of a moment read 0 while no engine is ready; totals keep the last ones heard."""
    up = int(engine.is_ready)
    num_blocks = gauges.blocks_free + gauges.blocks_cached + gauges.blocks_used
    single: dict[str, float] = {
        "engine_up": up,
        "engine_epoch": engine.epoch,
        "engine_restarts": engine.num_restarts,
        "engine_stalls": engine.num_stalls,
        "stale_outputs_dropped": engine.num_stale_outputs,
        "poison_suspects": engine.num_poison_suspects,
        "poison_refusals": engine.num_poison_refusals,
        "requests_running": up * gauges.num_running,
        "requests_waiting": up * gauges.num_waiting,
        "requests_constrained": up * gauges.num_constrained,
        "requests_held": up * gauges.num_held,
        "kv_cache_usage_ratio": up * gauges.blocks_used / num_blocks if num_blocks else 0.0,
        "prefix_cache_queries": gauges.num_prompt_tokens,
        "prefix_cache_hits": gauges.num_cached_tokens,
        "preemptions": gauges.num_preemptions,
        "engine_steps": gauges.num_steps,
        "engine_prefill_tokens": gauges.num_prefill_tokens,
        "engine_decode_tokens": gauges.num_decode_tokens,
        "engine_output_tokens": gauges.num_output_tokens,
        "spec_decode_num_drafts": gauges.num_drafts,
        "spec_decode_num_draft_tokens": gauges.num_draft_tokens,
        "spec_decode_num_accepted_tokens": gauges.num_accepted_tokens,
        "engine_last_step_seconds": up * gauges.step_s,
        "engine_last_step_tokens": up * gauges.num_step_tokens,
        "engine_prefill_steps": gauges.num_prefill_steps,
        "engine_prefill_step_seconds": gauges.prefill_steps_s,
        "engine_decode_steps": gauges.num_decode_steps,
        "engine_decode_step_seconds": gauges.decode_steps_s,
        "engine_grammar_compiles": gauges.num_grammar_compiles,
        "engine_grammar_compile_seconds": gauges.grammar_compile_s,
        "engine_grammar_compile_failures": gauges.num_grammar_failures,
        "engine_grammar_cache_hits": gauges.num_grammar_hits,
        "engine_grammar_masks": gauges.num_grammar_masks,
        "engine_grammar_mask_seconds": gauges.grammar_mask_s,
        "engine_pooled_prompts": gauges.num_pooled,
        "engine_pooled_tokens": gauges.num_pooled_tokens,
        "engine_pooled_batches": gauges.num_pooled_batches,
        "engine_pooled_batch_seconds": gauges.pooled_s,
    }
    series: dict[str, Series] = {"tidegate_" + name: [((), float(value))] for name, value in single.items()}
    states = {"free": gauges.blocks_free, "cached": gauges.blocks_cached, "used": gauges.blocks_used}
    series["tidegate_kv_blocks"] = [((state,), float(up * number)) for state, number in states.items()]
    return series


def _pool_series(engines: Sequence[EngineRowView]) -> dict[str, Series]:
    def column(value: Callable[[EngineRowView], float]) -> Series:
        return [((one.name, one.model), float(value(one))) for one in engines]

    return {
        "tidegate_pool_engine_up": column(lambda one: one.ready),
        "tidegate_pool_engine_state": [((one.name, one.model, one.state), 1.0) for one in engines],
        "tidegate_pool_engine_requests": column(lambda one: one.requests),
        "tidegate_pool_engine_outstanding_tokens": column(lambda one: one.outstanding_tokens),
        "tidegate_pool_engine_submitted": column(lambda one: one.submitted),
        "tidegate_pool_engine_lost": column(lambda one: one.lost),
        "tidegate_pool_engine_moved": column(lambda one: one.moved),
        "tidegate_pool_engine_ejections": column(lambda one: one.ejections),
        "tidegate_pool_engine_prompt_tokens": column(lambda one: one.prompt_tokens),
        "tidegate_pool_engine_matched_tokens": column(lambda one: one.matched_tokens),
    }


def _admission_series(admission: AdmissionView) -> dict[str, Series]:
    single: dict[str, float] = {
        "requests": admission.num_requests,
        "sequences": admission.num_sequences,
        "kv_blocks": admission.num_blocks,
        "waiting_requests": admission.num_waiting,
        "waiting_sequences": admission.num_waiting_sequences,
        "queued_tokens": admission.queued_tokens,
        "key_slots": admission.num_slots,
        "withdrawals": admission.num_withdrawn,
        "predictions": admission.num_predictions,
        "late_predictions": admission.num_late_predictions,
        "prediction_error_seconds": admission.prediction_error_s,
    }
    series: dict[str, Series] = {"tidegate_admission_" + name: [((), float(value))] for name, value in single.items()}
    series["tidegate_admission_refusals"] = [((reason,), float(n)) for reason, n in admission.refusals.items()]
    return series


def _ledger_series(ledger: LedgerView) -> dict[str, Series]:
    return {
        "tidegate_idempotency_entries": [((), float(ledger.num_entries))],
        "tidegate_idempotency_bytes": [((), float(ledger.num_bytes))],
        "tidegate_idempotency_evictions": [((), float(ledger.num_evicted))],
    }


def _quota_series(quotas: QuotasView) -> dict[str, Series]:
    outcomes = {"answered": quotas.num_answered, "unanswered": quotas.num_unanswered}
    return {
        "tidegate_quota_slots": [((), float(quotas.num_slots))],
        "tidegate_quota_questions": [((outcome,), float(number)) for outcome, number in outcomes.items()],
    }


def _telemetry_series(telemetry: TelemetryView) -> dict[str, Series]:
    outcomes = {
        "exported": telemetry.num_exported,
        "failed": telemetry.num_failed,
        "dropped": telemetry.num_dropped,
    }
    return {
        "tidegate_telemetry_waiting_requests": [((), float(telemetry.num_waiting))],
        "tidegate_telemetry_requests": [((outcome,), float(number)) for outcome, number in outcomes.items()],
    }


def _grammar_series(grammars: GrammarsView) -> dict[str, Series]:
    return {
        "tidegate_grammar_cache_entries": [((), float(grammars.num_entries))],
        "tidegate_grammar_cache_bytes": [((), float(grammars.num_bytes))],
        "tidegate_grammar_cache_evictions": [((), float(grammars.num_evicted))],
        "tidegate_grammar_compiles_pending": [((), float(grammars.num_pending))],
        "tidegate_grammar_compiles_overdue": [((), float(grammars.num_overdue))],
    }
