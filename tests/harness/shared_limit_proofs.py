"""Proofs of the bounds of traces, and of what several servers share; see `limit_proofs.py`."""

SHARED_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "contract/test_trace_context.py": {
        "no_text_at_all_breaks_the_reading": ("contract/trace_context.py MAX_STATE_MEMBERS",),
        "a_tracestate_that_is_too_long_loses_its_last_members": ("contract/trace_context.py MAX_STATE_CHARS",),
    },
    "telemetry/test_span_pump.py": {
        "a_full_queue_drops_and_counts_and_never_waits": ("cli/telemetry_section.py TelemetrySettings.queue_requests",),
        "what_waits_at_the_end_is_sent": ("telemetry/span_pump.py BATCH_REQUESTS",),
        "the_end_does_not_wait_longer_than_it_may": ("cli/telemetry_section.py TelemetrySettings.flush_s",),
    },
    "telemetry/test_telemetry_settings.py": {
        "a_large_file_of_headers_is_refused": ("cli/open_telemetry.py MAX_HEADERS_BYTES",),
    },
    "telemetry/test_exporter_words.py": {
        "what_is_said_is_bounded": ("telemetry/exporter_words.py MAX_CHARS",),
    },
    "stores/test_redis_troubles.py": {
        "a_redis_that_never_comes_to_the_end_of_its_answer_costs_the_ledger_no_more_than_its_time": (
            "stores/redis_ledger.py ANSWER_TIMEOUT_S",
        ),
    },
    "stores/test_redis_start.py": {
        "one_that_hangs_is_a_warning_after_its_time": ("stores/redis_start.py CHECK_TIMEOUT_S",),
        "what_it_says_is_quoted_in_part": ("stores/redis_start.py MAX_CHARS",),
    },
    "stores/test_redis_quotas.py": {
        "the_slots_of_a_server_that_died_come_back": ("stores/redis_quotas.py LEASE_S",),
        "a_redis_that_hangs_costs_no_more_than_the_timeout": ("cli/settings.py QuotaSettings.timeout_ms",),
        "a_redis_that_goes_is_left_alone_for_a_while_and_used_when_it_is_back": (
            "lifecycle/store_patience.py RETRY_S",
        ),
        "nothing_stays_in_redis_longer_than_it_means_something": ("stores/quota_scripts.py MAX_LIFE_MS",),
    },
}

SHARED_REASONS = {
    "serving/shared_quota_gate.py CLOSE_S": "a time at the end of the server; what waits is told or lapses",
}
