"""MetricsObserver: facts in, families out; the catalog, the registry and the documentation agree."""

import contextlib
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.errors import QueueFull, RateLimited
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.cost_model import CostModel
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.ledger_port import LedgerStatistics
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_port import QuotaStatistics
from tidegate.lifecycle.ticket import Ticket
from tidegate.observability.catalog import CATALOG, Kind
from tidegate.observability.exposition import render_metrics
from tidegate.observability.merged_metrics import MergedMetrics
from tidegate.observability.metrics import BOUNDS, MetricsObserver
from tidegate.observability.observer import GrammarChecked, RequestEnded
from tidegate.serving.grammar_check import GrammarAccounts
from tidegate.telemetry.span_pump import PumpStatistics

GAUGES = EngineGauges(
    num_waiting=3,
    num_running=4,
    num_held=1,
    blocks_free=10,
    blocks_cached=20,
    blocks_used=70,
    num_steps=9,
    num_preemptions=2,
    num_prefill_tokens=500,
    num_decode_tokens=600,
    num_prompt_tokens=900,
    num_cached_tokens=400,
    step_s=0.25,
    num_step_tokens=36,
    num_output_tokens=620,
    num_drafts=30,
    num_draft_tokens=90,
    num_accepted_tokens=45,
    prefill_steps_s=1.5,
    num_prefill_steps=5,
    num_mixed_steps=2,
    decode_steps_s=0.5,
    num_decode_steps=4,
    num_constrained=2,
    num_grammar_compiles=7,
    num_grammar_hits=11,
    num_grammar_failures=1,
    grammar_compile_s=0.75,
    num_grammar_masks=80,
    grammar_mask_s=0.125,
    num_pooled=17,
    num_pooled_tokens=170,
    num_pooled_batches=6,
    pooled_s=0.375,
)


def status(*, is_ready: bool = True) -> EngineStatus:
    return EngineStatus(is_ready, epoch=3, num_restarts=2, num_stale_outputs=5, gauges=GAUGES, model=None)


def ended(**changes: object) -> RequestEnded:
    facts: dict[str, object] = {
        "request_id": "r",
        "wire_id": "w",
        "route": "/v1/chat/completions",
        "model": "m",
        "outcome": "stop",
        "status": 200,
        "duration_s": 2.0,
    }
    return RequestEnded(**{**facts, **changes})  # type: ignore[arg-type]


def observer(*, is_ready: bool = True) -> MetricsObserver:
    return MetricsObserver(lambda: status(is_ready=is_ready), version="1.2.3")


def samples(metrics: MetricsObserver) -> dict[str, float]:
    body, _ = render_metrics(metrics.registry)
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_the_engines_accounts_are_read_when_somebody_looks() -> None:
    found = samples(observer())
    expected = {
        "engine_up": 1,
        "engine_epoch": 3,
        "engine_restarts_total": 2,
        "stale_outputs_dropped_total": 5,
        "requests_running": 4,
        "requests_waiting": 3,
        "requests_held": 1,
        "kv_blocks{state=free}": 10,
        "kv_blocks{state=cached}": 20,
        "kv_blocks{state=used}": 70,
        "kv_cache_usage_ratio": 0.7,
        "prefix_cache_queries_total": 900,
        "prefix_cache_hits_total": 400,
        "preemptions_total": 2,
        "engine_steps_total": 9,
        "engine_prefill_tokens_total": 500,
        "engine_decode_tokens_total": 600,
        "engine_output_tokens_total": 620,
        "spec_decode_num_drafts_total": 30,
        "spec_decode_num_draft_tokens_total": 90,
        "spec_decode_num_accepted_tokens_total": 45,
        "engine_last_step_seconds": 0.25,
        "engine_last_step_tokens": 36,
        "engine_prefill_steps_total": 5,
        "engine_prefill_step_seconds_total": 1.5,
        "engine_decode_steps_total": 4,
        "engine_decode_step_seconds_total": 0.5,
        "requests_constrained": 2,
        "engine_grammar_compiles_total": 7,
        "engine_grammar_cache_hits_total": 11,
        "engine_grammar_compile_failures_total": 1,
        "engine_grammar_compile_seconds_total": 0.75,
        "engine_grammar_masks_total": 80,
        "engine_grammar_mask_seconds_total": 0.125,
        "engine_pooled_prompts_total": 17,
        "engine_pooled_tokens_total": 170,
        "engine_pooled_batches_total": 6,
        "engine_pooled_batch_seconds_total": 0.375,
    }
    assert {name: found["tidegate_" + name] for name in expected} == expected


def test_counts_of_a_moment_read_zero_while_no_engine_is_ready_and_totals_stay() -> None:
    found = samples(observer(is_ready=False))
    assert found["tidegate_engine_up"] == 0
    assert found["tidegate_requests_running"] == 0
    assert found["tidegate_kv_blocks{state=used}"] == 0
    assert found["tidegate_kv_cache_usage_ratio"] == 0
    assert found["tidegate_engine_decode_tokens_total"] == 600


def test_admissions_accounts_are_read_too() -> None:
    admission = AdmissionController(
        AdmissionLimits(2, 3, 100), Drain(), declared=CostModel(prefill_base_s=0.5, prefill_token_s=0.0, step_s=0.25)
    )
    quotas = Quotas(concurrency=1)
    admission.claim_slot("k", quotas, 0.0)
    for name, num_choices in (("a", 2), ("b", 1), ("c", 1)):
        admission.enter(Ticket(name, "", num_choices, 30, 1, 4, 0.0), 0.0)
        admission.poll(0.0)
    for num_choices in (1, 3):
        with contextlib.suppress(QueueFull):
            admission.enter(Ticket("d", "", num_choices, 30, 1, 4, 0.0), 0.0)
    with contextlib.suppress(RateLimited):
        admission.claim_slot("k", quotas, 0.0)
    admission.note_started("a", 1.0)
    admission.leave("c", 0, 1.0)
    found = samples(MetricsObserver(status, admission.statistics))
    expected = {
        "requests": 2,
        "sequences": 3,
        "kv_blocks": 8,
        "waiting_requests": 0,
        "waiting_sequences": 0,
        "queued_tokens": 30,
        "key_slots": 1,
        "withdrawals_total": 1,
        "refusals_total{reason=queue_depth}": 1,
        "refusals_total{reason=queued_tokens}": 1,
        "refusals_total{reason=concurrency}": 1,
        "predictions_total": 1,
        "late_predictions_total": 1,
        "prediction_error_seconds_total": 0.25,
    }
    assert {name: found["tidegate_admission_" + name] for name in expected} == expected


OUTCOMES = [
    ({"outcome": "stop"}, {"request_success_total{finish_reason=stop}": 1}),
    ({"outcome": "tool_calls"}, {"request_success_total{finish_reason=tool_calls}": 1}),
    (
        {"outcome": "error", "code": "engine_lost"},
        {"requests_failed_total{code=engine_lost}": 1, "request_errors_total{code=engine_lost}": 1},
    ),
    ({"outcome": "error", "code": None}, {"requests_failed_total{code=internal_error}": 1}),
    ({"outcome": "client_gone", "status": None}, {"aborts_total{cause=client_gone}": 1}),
    (
        {"outcome": "shutdown", "code": "server_draining"},
        {"aborts_total{cause=shutdown}": 1, "request_errors_total{code=server_draining}": 1},
    ),
]


@pytest.mark.parametrize(("changes", "expected"), OUTCOMES)
def test_an_end_counts_where_it_belongs(changes: dict[str, object], expected: dict[str, float]) -> None:
    metrics = observer()
    metrics.request_ended(ended(**changes))
    names = ("request_success_total", "request_errors_total", "requests_failed_total", "aborts_total")
    prefixes = tuple("tidegate_" + name for name in names)
    found = {name: value for name, value in samples(metrics).items() if name.startswith(prefixes) and value}
    assert found == {"tidegate_" + name: value for name, value in expected.items()}


def test_an_end_adds_its_tokens_and_times() -> None:
    metrics = observer()
    counts = {"num_prompt_tokens": 7, "num_cached_tokens": 4, "num_completion_tokens": 9}
    metrics.request_ended(ended(**counts, queue_s=0.02, first_token_s=0.2))
    metrics.request_ended(ended(**counts, outcome="client_gone", duration_s=50.0))
    found = samples(metrics)
    tokens = ("prompt_tokens", "prompt_tokens_cached", "generation_tokens")
    assert [found[f"tidegate_{name}_total"] for name in tokens] == [14, 8, 18]
    assert found["tidegate_time_to_first_token_seconds_count"] == 1
    assert found["tidegate_time_to_first_token_seconds_sum"] == 0.2
    assert found["tidegate_queue_time_seconds_bucket{le=0.01}"] == 0
    assert found["tidegate_queue_time_seconds_bucket{le=0.025}"] == 1
    assert found["tidegate_e2e_request_latency_seconds_count"] == 1
    assert found["tidegate_e2e_request_latency_seconds_sum"] == 2.0
    assert found["tidegate_request_prompt_tokens_bucket{le=8.0}"] == 2


def test_several_tokens_in_one_delta_share_its_gap() -> None:
    metrics = observer()
    metrics.tokens_delivered(1, None)
    metrics.tokens_delivered(4, 0.08)
    metrics.tokens_delivered(0, 0.5)
    found = samples(metrics)
    assert found["tidegate_tokens_delivered_total"] == 5
    assert found["tidegate_inter_token_latency_seconds_count"] == 4
    assert found["tidegate_inter_token_latency_seconds_bucket{le=0.02}"] == 4
    assert found["tidegate_inter_token_latency_seconds_sum"] == pytest.approx(0.08)


def test_refusals_retries_and_responses_count_by_route() -> None:  # OVL-7
    metrics = observer()
    metrics.request_received("/v1/x", 0)
    metrics.request_received("/v1/x", 2)
    metrics.request_refused("/v1/x", 429, "queue_full")
    metrics.http_response("/v1/x", "POST", 429)
    metrics.http_response("/v1/x", "BREW", 405)
    found = samples(metrics)
    assert found["tidegate_requests_received_total{route=/v1/x}"] == 2
    assert found["tidegate_retries_seen_total{route=/v1/x}"] == 1
    assert found["tidegate_requests_refused_total{code=queue_full,route=/v1/x}"] == 1
    assert found["tidegate_request_errors_total{code=queue_full}"] == 1
    assert found["tidegate_http_requests_total{method=POST,route=/v1/x,status=429}"] == 1
    assert found["tidegate_http_requests_total{method=other,route=/v1/x,status=405}"] == 1


def test_labels_cannot_grow_without_bound() -> None:  # OVL-8
    metrics = observer()
    for i in range(2000):
        metrics.request_received(f"/{i}")
    counted = {name: value for name, value in samples(metrics).items() if "requests_received_total" in name}
    assert len(counted) == 501
    assert counted["tidegate_requests_received_total{route=other}"] == 1500


def test_the_process_and_the_build_are_described() -> None:
    found = samples(observer())
    assert found["process_resident_memory_bytes"] > 0
    assert found["process_open_fds"] > 0
    assert any(re.fullmatch(r"tidegate_build_info\{python=3.*,version=1\.2\.3\}", name) for name in found)


def test_the_registry_holds_exactly_the_catalog() -> None:
    metrics = MetricsObserver(
        status, AdmissionController(AdmissionLimits(1, 1, 1), Drain()).statistics, "", LedgerStatistics
    )
    metrics.grammars = lambda: GrammarAccounts(0, 0, 0, 0, 0)
    metrics.engines = list
    metrics.quotas = QuotaStatistics
    metrics.telemetry = PumpStatistics
    families = {family.name: (family.type, family.documentation) for family in metrics.collect()}
    assert families == {metric.name: (metric.kind.value, metric.help) for metric in CATALOG}
    assert {metric.name for metric in CATALOG if metric.kind is Kind.HISTOGRAM} == {
        "tidegate_" + name for name in BOUNDS
    }


def test_the_documentation_lists_exactly_the_catalog() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(tidegate_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [
        (metric.sample_name, metric.kind.value, ", ".join(f"`{label}`" for label in metric.labels), metric.help)
        for metric in CATALOG
    ]


def test_checks_of_constraints_are_counted_and_their_cache_is_read() -> None:
    metrics = MetricsObserver(status)
    assert not any(name.startswith("tidegate_grammar_cache") for name in samples(metrics))
    metrics.grammars = lambda: GrammarAccounts(3, 4096, 2, 5, 1)
    for outcome, compile_s in (("compiled", 0.02), ("hit", None), ("hit", None), ("timeout", 3.0)):
        metrics.grammar_checked(GrammarChecked(kind="regex", outcome=outcome, compile_s=compile_s))
    found = samples(metrics)
    expected = {
        "grammar_checks_total{kind=regex,outcome=hit}": 2,
        "grammar_checks_total{kind=regex,outcome=timeout}": 1,
        "grammar_compile_seconds_count": 2,
        "grammar_cache_entries": 3,
        "grammar_cache_bytes": 4096,
        "grammar_cache_evictions_total": 2,
        "grammar_compiles_pending": 5,
        "grammar_compiles_overdue": 1,
    }
    assert {name: found["tidegate_" + name] for name in expected} == expected


def test_claims_of_idempotency_keys_are_counted_and_their_store_is_read() -> None:
    metrics = MetricsObserver(status, None, "", lambda: LedgerStatistics(7, 900, 2))
    for outcome in ("fresh", "replayed", "replayed"):
        metrics.claim_answered(outcome)
    metrics.claim_ended("recorded")
    metrics.request_ended(ended(outcome="replayed"))
    found = samples(metrics)
    expected = {
        "idempotency_claims_total{outcome=fresh}": 1,
        "idempotency_claims_total{outcome=replayed}": 2,
        "idempotency_ends_total{outcome=recorded}": 1,
        "idempotency_entries": 7,
        "idempotency_bytes": 900,
        "idempotency_evictions_total": 2,
    }
    assert {name: found["tidegate_" + name] for name in expected} == expected
    assert not any(name.startswith("tidegate_aborts") for name in found)


def test_one_store_of_several_processes_is_shown_once() -> None:
    texts = []
    for num_entries, num_evicted in ((7, 2), (8, 1)):
        statistics = LedgerStatistics(num_entries, 100, num_evicted)
        worker = MetricsObserver(status, None, "", lambda statistics=statistics: statistics)  # type: ignore[misc]
        texts.append(render_metrics(worker.registry)[0].decode())
    body, _ = render_metrics(MergedMetrics(observer().registry, texts).registry)
    values = {
        name: float(value) for name, value in re.findall(r"^(tidegate_idem\S+) (\S+)$", body.decode(), re.MULTILINE)
    }
    assert values["tidegate_idempotency_entries"] == 8
    assert values["tidegate_idempotency_bytes"] == 100
    assert values["tidegate_idempotency_evictions_total"] == 3
