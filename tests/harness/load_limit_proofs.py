"""Which test pushes each bound of `tidegate bench` past its maximum (see `limit_proofs.py`)."""

LOAD_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "loadtest/test_answer_reader.py": {
        "what_never_ends_is_not_read_for_ever": (
            "loadtest/answer_reader.py MAX_BODY_BYTES",
            "loadtest/answer_reader.py MAX_WHOLE_BYTES",
            "loadtest/answer_reader.py MAX_EVENT_BYTES",
        ),
        "an_error_is_told_by_its_message": ("loadtest/answer_reader.py MAX_DETAIL_CHARS",),
    },
    "loadtest/test_asking.py": {
        "a_head_without_an_end_is_no_http": ("loadtest/http_client.py MAX_HEADER_BYTES",),
        "of_a_refusal_and_a_list_only_the_beginning_is_read": (
            "loadtest/ask.py MAX_REFUSAL_BYTES",
            "loadtest/preflight.py MAX_LIST_BYTES",
        ),
        "who_answers_the_first_request_too_late_is_left": ("loadtest/preflight.py PREFLIGHT_TIMEOUT_S",),
    },
    "loadtest/test_statistics.py": {
        "of_each_kind_of_error_one_is_told_and_of_many_kinds_some": ("loadtest/run_summary.py MAX_DETAILS",),
    },
    "loadtest/test_runner.py": {
        "what_an_open_loop_may_not_send_is_counted_and_not_sent": ("loadtest/orders.py Load.max_in_flight",),
    },
    "cli/test_bench_command.py": {
        "orders_beyond_the_bounds_are_refused": (
            "cli/bench_command.py MAX_SESSIONS",
            "cli/bench_command.py MAX_CLIENTS",
            "loadtest/session_file.py MAX_FILE_BYTES",
        ),
    },
}
