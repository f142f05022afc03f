"""Which tests push the bounds of what is kept of a remote engine past their maximum, as in `limit_proofs.py`."""

REMOTE_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "engines_remote/test_event_lines.py": {
        "an_event_is_bounded": ("engines/remote/event_lines.py MAX_EVENT_BYTES",),
    },
    "engines_remote/test_http_exchanges.py": {
        "connections_are_bounded": ("engines/remote/connection_pool.py MAX_CONNECTIONS",),
        "idle_connections_are_bounded": ("engines/remote/connection_pool.py MAX_IDLE",),
        "a_connection_is_used_again_while_it_is_fresh": ("engines/remote/connection_pool.py MAX_IDLE_S",),
        "a_head_is_bounded": ("engines/remote/http_connection.py MAX_HEAD_BYTES",),
        "an_answer_is_bounded": ("engines/remote/ask.py MAX_ANSWER_BYTES",),
        "a_question_without_an_answer_is_given_up_and_its_connection_closed": (
            "engines/remote/watch.py WatchSettings.answer_timeout_s",
        ),
        "orders_that_nobody_waits_for_are_bounded": ("engines/remote/side_orders.py MAX_SIDE_ORDERS",),
    },
    "engines_remote/test_remote_bounds.py": {
        "an_answer_that_is_no_stream_is_bounded": ("engines/remote/choice_run.py MAX_BODY_BYTES",),
        "the_body_of_a_refusal_is_bounded": ("engines/remote/choice_run.py MAX_ERROR_BYTES",),
        "advice_to_come_again_is_bounded": ("engines/remote/client.py MAX_RETRY_AFTER_S",),
    },
    "engines_vllm/test_llm_life.py": {
        "choices_beyond_the_bound_are_refused_before_vllm_hears_of_them": ("engines/vllm/llm_carrier.py MAX_RUNS",),
        "a_start_that_hangs_is_left_alone_after_a_while": ("engines/vllm/watch.py ABANDON_S",),
    },
    "engines_vllm/test_engine_faults.py": {
        "what_goes_to_the_log_is_bounded": ("engines/vllm/engine_faults.py MAX_REASON_CHARS",),
    },
    "engines_vllm/test_weights_digest.py": {
        "of_large_files_the_beginning_and_samples_are_read": (
            "engines/vllm/weights_digest.py HEAD_BYTES",
            "engines/vllm/weights_digest.py NUM_SAMPLES",
        ),
    },
    "engines_remote/test_remote_grammar.py": {
        "texts_are_kept_up_to_a_bound_and_the_last_used_longest": ("engines/remote/remote_grammar.py MAX_KEPT",),
    },
}

REMOTE_REASONS = {
    "engines/remote/connection_pool.py CONNECT_TIMEOUT_S": "a time; the connection behind it is counted",
    "engines/remote/side_orders.py SIDE_TIMEOUT_S": "a time; the orders behind it have a bound of their own",
    "engines/remote/watch.py WatchSettings.max_wait_s": "a time between two looks; nothing is held",
    "cli/settings.py EngineSettings.health_interval_s": "a time between two looks; nothing is held",
    "engines/vllm/watch.py END_GRACE_S": "a time; then the processes are killed",
    "cli/remote_engine.py MAX_KEY_BYTES": "one read of a file of the operator's",
    "cli/remote_engine.py LOOK_TIMEOUT_S": "a time of the command line; nothing is held",
}
