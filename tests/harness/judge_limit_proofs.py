"""Which test pushes each bound of the conformance suite past its maximum, or why none does (see `limit_proofs.py`)."""

JUDGE_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "conformance/test_http_client.py": {
        "every_answer_ends_in_words": (
            "conformance/wire/http_client.py MAX_RESPONSE_BYTES",
            "conformance/wire/http_client.py MAX_RESPONSE_PARTS",
            "conformance/wire/http_response.py MAX_HEAD_BYTES",
            "conformance/wire/http_response.py MAX_INTERIM",
        ),
        "silence_ends_at_the_time_limit": ("conformance/wire/target.py REQUEST_TIMEOUT_S",),
    },
    "conformance/test_runner.py": {
        "a_run_ends_at_its_bounds": (
            "conformance/running/runner.py RunBounds.max_s",
            "conformance/running/runner.py RunBounds.max_requests",
            "conformance/running/runner.py RunBounds.max_bytes",
        ),
        "an_ask_that_never_holds_is_not_repeated_forever": (
            "conformance/ask.py POLL_S",
            "conformance/catalog/load_asks.py REST_S",
            "conformance/catalog/load_asks.py BACK_S",
            "conformance/catalog/cancellation.py LONG_REST_S",
            "conformance/catalog/cancellation.py LOOK_S",
            "conformance/catalog/cancellation.py LOOK_AT_MANY_S",
        ),
        "a_lasting_ask_leaves_at_its_own_time_at_the_latest": ("conformance/catalog/cancellation.py KEPT_S",),
        "a_server_that_dies_costs_the_later_cases_no_time": ("conformance/running/runner.py RunBounds.patience_s",),
        "a_server_that_hangs_is_not_waited_for_again_and_again": ("conformance/running/runner.py RunBounds.answer_s",),
    },
    "conformance/test_load_by_metrics.py": {
        "a_page_of_metrics_that_is_too_long_is_not_read": ("conformance/wire/metric_formats.py MAX_PAGE_CHARS",),
    },
    "conformance/test_deadline_checks.py": {
        "an_answer_counts_as_late_only_where_it_clearly_is": ("conformance/checks/deadline.py CLEARLY_S",),
    },
    "conformance/test_probe.py": {
        "a_server_that_stays_busy_is_not_asked_forever": ("conformance/probing/probe.py MAX_ATTEMPTS",),
    },
    "conformance/test_recording.py": {
        "bytes_that_unpack_beyond_the_bound_are_refused": ("conformance/recording/format.py MAX_BYTES",),
        "a_file_beyond_the_bound_is_not_read": ("conformance/recording/files.py MAX_FILE_BYTES",),
    },
    "conformance/test_heartbeat_check.py": {
        "a_heartbeat_that_is_not_told_or_beyond_the_bound_is_not_waited_for": (
            "conformance/checks/heartbeat.py LONGEST_S",
        ),
    },
}

JUDGE_REASONS = {
    "conformance/wire/http_client.py CLOSE_S": "a time; the connection behind it is dropped",
    "conformance/probing/probe_table.py PROBE_TIMEOUT_S": "a time, kept by the same client as that of a request",
    "conformance/probing/probe.py MAX_WAIT_S": "a time between two attempts; nothing is held",
}
