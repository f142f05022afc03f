"""Which test pushes each bound of docs/limits.md past its maximum. A bound is named by its place in the code.

A bound that holds no state, or that callers do not reach, stands in REASONS instead.
"""

from harness.deploy_limit_proofs import DEPLOY_PROOFS
from harness.engine_limit_proofs import ENGINE_PROOFS
from harness.grammar_limit_proofs import GRAMMAR_PROOFS
from harness.judge_limit_proofs import JUDGE_PROOFS, JUDGE_REASONS
from harness.load_limit_proofs import LOAD_PROOFS
from harness.ray_limit_proofs import RAY_PROOFS, RAY_REASONS
from harness.remote_limit_proofs import REMOTE_PROOFS, REMOTE_REASONS
from harness.report_limit_proofs import REPORT_PROOFS
from harness.shared_limit_proofs import SHARED_PROOFS, SHARED_REASONS

PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    **DEPLOY_PROOFS,
    **ENGINE_PROOFS,
    **GRAMMAR_PROOFS,
    **JUDGE_PROOFS,
    **RAY_PROOFS,
    **REMOTE_PROOFS,
    "serving/test_grammar_check.py": {
        "a_compilation_beyond_its_limit_is_refused_while_it_runs_and_afterwards": (
            "cli/settings.py LimitSettings.grammar_compile_ms",
        ),
        "compilations_that_ignore_their_limit_cannot_exhaust_the_threads_in_silence": (
            "cli/settings.py GrammarSettings.compile_threads",
        ),
        "no_more_sources_wait_than_the_bound_allows": ("serving/grammar_check.py MAX_WAITING",),
        "many_sources_leave_no_more_verdicts_than_the_cache_holds": (
            "cli/settings.py GrammarSettings.cache_entries",
            "cli/settings.py GrammarSettings.cache_bytes",
        ),
    },
    "serving_rules/test_constraint_rules.py": {
        "sizes_are_bounded_and_may_be_lowered": (
            "cli/settings.py LimitSettings.schema_bytes",
            "cli/settings.py LimitSettings.schema_depth",
        ),
    },
    "engine_process/test_compile_pool.py": {
        "the_cache_is_bounded": ("engine_process/compile_pool.py PoolLimits.max_entries",),
        "closing_drops_what_has_not_begun": ("engine_process/compile_pool.py PoolLimits.num_threads",),
    },
    "tool_grammar/test_tag_values.py": {
        "types_are_looked_for_as_far_as_the_parser_looks": ("grammar/composite/raw_text.py MAX_LOOKS",),
    },
    "parsers/test_tool_families.py": {
        "a_schema_is_looked_at_so_far_and_no_further": ("parsers/offered_tools.py MAX_LOOKS",),
    },
    "contract/test_json_size.py": {
        "too_much_is_refused_by_name": ("contract/json_size.py MAX_MEMBERS", "contract/json_size.py MAX_ELEMENTS"),
    },
    "cli/test_fleet_members.py": {
        "no_model_gets_more_engines_than_the_bound": ("cli/fleet_members.py MAX_ENGINES",),
    },
    "pool/test_scaling.py": {
        "starts_that_fail_are_tried_again_after_waits_that_double_up_to_a_ceiling": (
            "engines/pool/scaling.py MAX_REST_S",
        ),
        "retirements_that_demand_takes_back_wait_twice_as_long_each_time_up_to_a_ceiling": (
            "engines/pool/scaling.py MAX_PATIENCE",
        ),
    },
    "pool/test_pool_moves.py": {
        "a_request_moves_as_often_as_it_may_and_never_to_an_engine_that_lost_it": (
            "cli/settings.py PoolSettings.max_moves",
        ),
    },
    "pool/test_member_health.py": {
        "faults_count_in_a_row_and_one_is_enough_on_trial": ("cli/settings.py PoolSettings.eject_after",),
        "waits_double_up_to_a_ceiling_and_begin_anew_after_calm": ("cli/settings.py PoolSettings.eject_max_wait_s",),
    },
    "pool/test_prefixes.py": {
        "a_very_long_prompt_is_looked_at_up_to_a_bound": ("engines/pool/prefix_hash.py MAX_BLOCKS",),
        "no_more_is_remembered_than_a_cache_could_hold_and_ends_go_before_beginnings": (
            "engines/pool/prefix_memory.py MAX_PREFIXES",
        ),
    },
    "serving/test_large_bodies.py": {
        "a_text_to_tokenize_has_a_bound_of_its_own": ("serving/prompt_rules.py MAX_TOKENIZE_CHARACTERS",),
    },
    "http/test_listener.py": {
        "accepted_connections_inherit_the_options": ("cli/settings.py ServerSettings.send_buffer_bytes",),
    },
    "lifecycle/test_ledger_fingerprint.py": {
        "a_key_is_visible_ascii_quoted_or_not": ("lifecycle/fingerprint.py MAX_KEY_CHARACTERS",),
    },
    "stores/test_sqlite_ledger.py": {
        "what_has_expired_goes_in_small_batches": (
            "cli/settings.py IdempotencySettings.retention_s",
            "stores/ledger_file.py BATCH_ENTRIES",
        ),
        "smaller_bounds_are_reached_after_a_restart": ("cli/settings.py IdempotencySettings.max_entries",),
        "a_busy_file_delays_nobody_else_and_then_is_unavailable": ("stores/ledger_file.py BUSY_TIMEOUT_S",),
    },
    "stores/test_redis_ledger.py": {
        "sigkill_frees_a_key_when_its_lease_ends": ("stores/redis_ledger.py LEASE_S",),
    },
    "stores/test_ledger_checks.py": {
        "the_ledger_in_sqlite_keeps_the_port": ("cli/settings.py IdempotencySettings.max_bytes",),
    },
    "serving/test_idempotent_service.py": {
        "a_too_large_answer_goes_out_and_a_retry_runs": ("cli/settings.py IdempotencySettings.max_answer_bytes",),
    },
    "serving/test_recording_stream.py": {
        "all_streams_together_are_bounded": ("serving/answer_recorder.py MAX_RECORDING_BYTES",),
        "a_long_stream_is_replayed_in_pieces_that_end_with_an_event": ("serving/replay_stream.py PIECE_BYTES",),
    },
    "http/test_authorise.py": {
        "anything_else_is_401_and_repeats_nothing": ("http/authorise.py MAX_CREDENTIAL_CHARS",),
    },
    "http/test_request_head.py": {
        "path_and_query_share_one_limit": ("http/settings.py HttpSettings.uri_bytes",),
        "headers_up_to_the_limit_are_taken_and_one_byte_more_is_not": ("http/settings.py HttpSettings.header_bytes",),
    },
    "http/test_wire_requests.py": {
        "garbage_never_harms_the_next_client": ("http/uvicorn_server.py _MAX_HEAD_BYTES",),
        "a_head_that_does_not_come_is_given_up": ("http/settings.py ServerSettings.header_timeout_s",),
    },
    "e2e/test_overload.py": {
        "a_body_beyond_the_limit_is_refused_unread": ("cli/settings.py LimitSettings.body_bytes",),
        "of_two_hundred_at_once_each_is_served_or_told_to_come_back": (
            "cli/settings.py AdmissionSettings.queue_depth",
        ),
        "prompt_tokens_that_wait_are_bounded": ("cli/settings.py AdmissionSettings.queued_tokens",),
    },
    "http/test_app.py": {
        "a_body_that_does_not_come_in_time_is_408": ("cli/settings.py ServerSettings.body_timeout_s",),
    },
    "http/test_limits_of_bodies.py": {
        "no_more_of_a_refused_body_is_read_than_the_bound": ("http/request_body.py _DISCARDED_BYTES",),
    },
    "e2e/test_hostile_bodies.py": {
        "nesting_beyond_the_limit_is_refused_in_every_place": ("cli/settings.py LimitSettings.json_depth",),
        "a_list_of_prompts_does_not_fan_out": ("cli/settings.py LimitSettings.prompts",),
        "a_number_of_choices_beyond_the_limit_costs_nothing": ("cli/settings.py LimitSettings.choices",),
    },
    "serving_rules/test_request_rules.py": {
        "a_cap_may_be_lowered_and_is_named": ("cli/settings.py LimitSettings.messages",),
        "what_is_malformed_is_400_with_its_field": ("contract/bounds.py Limits.logit_bias_entries",),
        "tools_are_bounded_in_number_and_in_bytes": (
            "contract/bounds.py Limits.tools",
            "contract/bounds.py Limits.tool_bytes",
        ),
    },
    "serving_reading/test_reading_rules.py": {
        "the_number_of_texts_is_bounded_and_the_limit_is_named": ("cli/settings.py LimitSettings.inputs",),
        "labels_are_bounded_by_number_and_by_what_they_make_the_model_read": ("contract/bounds.py Limits.labels",),
    },
    "serving_rules/test_sampling_rules.py": {
        "stop_strings": ("contract/bounds.py Limits.stop_strings",),
    },
    "e2e/test_sampling_limits.py": {
        "what_is_beyond_them_is_a_400_that_names_the_field": ("serving/sampling_rules.py MAX_BAD_WORDS",),
    },
    "text/test_template_env.py": {
        "time_is_bounded_wherever_a_template_can_spend_it": ("cli/settings.py LimitSettings.template_ms",),
        "size_is_bounded_before_anything_is_built": ("cli/settings.py LimitSettings.template_bytes",),
        "what_fails_in_a_template_is_the_requests_fault_and_says_nothing_of_ours": (
            "text/template_env.py _MAX_PARTS",
            "text/template_budget.py _MAX_INTEGER_BITS",
        ),
    },
    "serving_rules/test_script_rules.py": {
        "a_script_that_cannot_be_played_is_refused_by_path": (
            "serving/script_rules.py MAX_SCRIPT_TOKENS",
            "serving/script_rules.py MAX_CONTROLS",
        ),
    },
    "e2e/test_backpressure.py": {
        "a_reader_that_stops_and_comes_back_gets_the_same_text": ("cli/settings.py ServerSettings.unsent_bytes",),
        "a_reader_that_never_reads_is_cut_off_and_counted": ("cli/settings.py ServerSettings.slow_client_timeout_s",),
    },
    "serving/test_mailbox.py": {
        "a_reader_that_never_comes_costs_a_bounded_number_of_pieces": ("serving/mailbox.py _COMPACT_AT",),
    },
    "contract/test_error_table.py": {
        "a_message_is_bounded_and_always_encodable": (
            "contract/error_table.py MAX_MESSAGE_BYTES",
            "contract/error_table.py MAX_PARAM_BYTES",
        ),
    },
    "contract/test_decode_fault.py": {
        "a_quoted_value_is_cut_and_cannot_forge_a_path": ("contract/quote.py MAX_QUOTED_CHARACTERS",),
    },
    "contract/test_unknown_fields.py": {
        "the_header_is_bounded": ("contract/unknown_fields.py _MAX_HEADER_NAMES",),
    },
    "engines/test_local_engine.py": {
        "retry_after_stays_within_the_contract": ("engines/local/client.py MAX_RETRY_AFTER_S",),
        "a_long_step_is_handed_over_in_slices": ("engines/local/channel.py SLICE_DELTAS",),
    },
    "e2e/test_fault_matrix_server.py": {
        "a_drain_that_is_too_short_ends_a_request_with_an_error": ("cli/settings.py ServerSettings.drain_timeout_s",),
    },
    "e2e/test_drain.py": {
        "a_reader_that_is_stuck_does_not_keep_a_program_from_its_end": ("cli/public_service.py LAST_WORDS_S",),
    },
    "engine/test_framing.py": {
        "a_message_above_the_bound_is_not_sent": ("engine/framing.py MAX_FRAME_BYTES",),
    },
    "engine_process/test_step_loop.py": {
        "a_reader_that_is_too_far_behind_is_gone": ("engine_process/loop.py MAX_UNSENT_BYTES",),
        "server_processes_beyond_the_bound_are_turned_away": ("engine_process/loop.py MAX_CONNECTIONS",),
    },
    "engines/test_channel_bounds.py": {
        "an_engine_that_does_not_read_gets_no_more_requests": ("engines/local/channel.py MAX_UNSENT_BYTES",),
    },
    "engines/test_supervisor.py": {
        "an_engine_that_does_not_answer_sigterm_is_killed_at_the_end": (
            "engines/local/supervisor.py SupervisorSettings.stop_grace_s",
        ),
        "what_never_starts_is_given_up_with_its_last_words": (
            "engines/life/restart_policy.py RestartSettings.max_failed_starts",
        ),
    },
    "engines/test_restart_policy.py": {
        "each_life_is_decided": ("engines/life/restart_policy.py RestartSettings.max_wait_s",),
    },
    "core/test_kv_manager.py": {
        "what_is_cached_makes_room_from_its_end_and_the_oldest_first": ("core/kv/manager.py EVICTED_AT_ONCE",),
        "what_is_cached_gives_way_to_consecutive_ids_and_moves_if_it_is_long": ("core/kv/manager.py RELOCATED_TOKENS",),
    },
    "stores/test_sqlite_keys.py": {
        "keys_and_memories_of_revoked_ones_are_bounded": ("stores/key_file.py MAX_KEYS",),
        "keys_that_cannot_be_read_any_more_hold_for_a_while_and_then_nobody_gets_in": ("stores/live_keys.py STALE_S",),
        "last_use_is_written_once_a_minute_and_at_the_end": ("stores/live_keys.py FLUSH_S",),
    },
    "lifecycle/test_key_policy.py": {
        "a_policy_is_taken_or_refused_by_field": (
            "lifecycle/key_policy.py MAX_NAME_CHARS",
            "lifecycle/key_policy.py MAX_MODELS",
            "lifecycle/key_policy.py MAX_MODEL_CHARS",
        ),
        "numbers_at_both_ends_are_taken_and_beyond_them_refused_with_the_range": (
            "lifecycle/key_policy.py MAX_KEY_DAYS",
        ),
    },
    "cli/test_access.py": {
        "the_file_of_the_admin_credential_is_checked": ("cli/access.py MIN_CREDENTIAL_CHARS",),
    },
    "observability/test_redact.py": {
        "long_text_is_cut_and_says_so": ("observability/redact.py MAX_TEXT_CHARS",),
        "a_wide_value_is_cut": ("observability/redact.py MAX_ITEMS",),
        "a_value_is_shown_like_this": ("observability/redact.py MAX_DEPTH",),
    },
    "observability/test_logs.py": {
        "a_traceback_has_a_bounded_number_of_bounded_lines": (
            "observability/logs.py MAX_TRACEBACK_LINES",
            "observability/logs.py MAX_TRACEBACK_LINE_CHARS",
        ),
    },
    "engines/test_bounds.py": {
        "reading_pauses_while_much_waits_to_be_handed_on": ("engines/local/channel.py PAUSE_ABOVE_BYTES",),
        "of_a_talkative_child_the_last_lines_are_kept_and_each_is_cut": (
            "engines/local/process.py KEPT_LINES",
            "engines/local/process.py KEPT_LINE_BYTES",
        ),
    },
    "lifecycle/test_admission.py": {
        "waiting_has_its_own_deadline_counted_from_entry": ("cli/settings.py AdmissionSettings.queue_deadline_ms",),
        "what_is_let_in_fits_the_cache_several_times_and_one_alone_always_does": (
            "cli/settings.py AdmissionSettings.kv_overcommit",
        ),
        "few_sequences_wait_inside_the_engine": ("lifecycle/engine_load.py ROWS_FOR_ONE_AHEAD",),
    },
    "lifecycle/test_quota.py": {
        "the_number_of_keys_is_bounded_and_live_ones_stay": ("lifecycle/quota.py MAX_KEYS",),
    },
    "e2e/test_engine_death.py": {
        "an_engine_that_answers_and_makes_no_step_is_replaced": ("cli/settings.py EngineSettings.stall_timeout_s",),
    },
    "cli/test_admin_client.py": {
        "a_server_that_does_not_answer_is_given_up": ("cli/admin_client.py TIMEOUT_S",),
        "an_answer_that_is_none_is_told": ("cli/admin_client.py MAX_ANSWER_BYTES",),
        "a_credential_that_is_none_is_told": ("cli/admin_client.py MAX_TOKEN_BYTES",),
    },
    "cli/test_worker_control.py": {
        "an_answer_beyond_the_bound_is_left_out": ("cli/worker_control.py MAX_ANSWER_BYTES",),
        "what_is_no_question_gets_no_answer": ("cli/worker_control.py MAX_QUESTION_BYTES",),
    },
    "engines/test_engine_loss.py": {
        "flushes_that_wait_are_bounded": ("engines/local/client.py MAX_FLUSHES",),
    },
    "lifecycle/test_poison.py": {
        "the_watch_is_bounded_and_lets_the_oldest_go": ("lifecycle/poison.py MAX_SUSPECTS",),
        "of_the_deaths_that_are_held_against_one_request_the_newest_are_kept": ("lifecycle/poison.py MAX_DEATHS",),
        "old_blame_is_forgotten": ("lifecycle/poison.py FORGOTTEN_AFTER_S",),
        "a_sentence_ends_and_each_relapse_doubles_it_up_to_a_bound": ("lifecycle/poison.py LONGEST_SENTENCE_S",),
    },
    "http/test_admin_routes.py": {
        "a_bad_act_is_refused_and_audited": (
            "contract/admin.py MAX_BODY_BYTES",
            "contract/admin.py MAX_WAIT_S",
            "contract/admin.py MAX_READY_S",
            "contract/admin.py MAX_NAME_CHARACTERS",
            "contract/admin.py MAX_URL_CHARACTERS",
            "contract/admin.py MAX_DRAIN_S",
        ),
        "a_query_that_is_none_is_refused": ("contract/admin_query.py MAX_LISTED",),
    },
    "http/test_pending_bodies.py": {
        "a_body_over_the_sum_is_503_and_room_comes_back_with_the_answers": (
            "cli/settings.py LimitSettings.pending_body_bytes",
        ),
        "large_bodies_leave_room_for_small_ones": ("http/pending_bodies.py SMALL_BODY_BYTES",),
    },
    "http/test_hostile_http.py": {
        "what_is_not_http_is_refused_and_closed": ("http/uvicorn_server.py _MAX_FRAMING_BYTES",),
    },
    "http/test_cors.py": {
        "only_counters_of_clients_are_allowed_beside_the_fixed_names": ("http/cors.py MAX_REQUESTED_HEADERS",),
    },
    "tool_grammar/test_lark_bounds.py": {
        "a_grammar_inside_a_call_has_bounds": (
            "grammar/lark/lark_product.py MAX_EMBEDDED_RULES",
            "grammar/lark/lark_product.py MAX_UNROLLED",
            "grammar/lark/lark_reader.py MAX_LARK_TOKENS",
            "grammar/lark/lark_regex.py MAX_LARK_REGEX_DEPTH",
            "grammar/lark/tree_states.py MAX_TREE_STATES",
        ),
    },
    "serving_formats/test_control_tokens.py": {
        "few_formats_are_remembered": ("serving/output_reading.py MAX_FORMATS",),
    },
    "e2e/test_access_log.py": {
        "a_long_header_is_cut": ("observability/access_log.py MAX_CLIENT_TEXT",),
    },
    **LOAD_PROOFS,
    **REPORT_PROOFS,
    **SHARED_PROOFS,
}
"""By file and test: the bounds that it pushes."""

REASONS = {
    **JUDGE_REASONS,
    **RAY_REASONS,
    **REMOTE_REASONS,
    **SHARED_REASONS,
    "grammar/lark/lark_product.py MAX_STEPS": "compared at each look; a counter, nothing is held",
    "grammar/lark/llguidance_limits.py MAX_LEXER_STATES": "handed to the library, which fails the machine",
    "serving/answer_recorder.py INLINE_BYTES": "a choice between two ways of the same work; nothing is held",
    "stores/sqlite_ledger.py UPKEEP_S": "a time between two looks; nothing is held",
    "stores/ledger_file.py CHECKED_BYTES": "a choice of how much is read at the start; nothing is held",
    "stores/redis_client.py MAX_CONNECTIONS": "handed to the client library, which makes further calls wait",
    "http/connection_watch.py TICK_S": "a time between two looks; nothing is held",
    "stores/live_keys.py POLL_S": "a time between two looks; nothing is held",
    "stores/sqlite_keys.py LOCK_TIMEOUT_S": "a time of the command line; nothing is held",
    "http/settings.py HttpSettings.linger_s": "a time after a refusal; the bytes beside it are pushed past their bound",
    "http/settings.py ServerSettings.max_requests": "handed to the HTTP server; 5,000 streams at once are measured",
    "http/settings.py ServerSettings.backlog": "handed to the kernel, which keeps it",
    "cli/settings.py EngineSettings.replicas": "a number of the operator's, checked when it is read",
    "cli/settings.py EngineSettings.max_replicas": "a number of the operator's, checked when it is read",
    "cli/fleet_scaler.py START_S": "a time; the engine behind it is one",
    "cli/fleet_scaler.py LOOK_INTERVAL_S": "a time between two looks; nothing is held",
    "cli/fleet_members.py LOOK_INTERVAL_S": "a time between two looks; nothing is held",
    "cli/admin_client.py CONNECT_TIMEOUT_S": "a time; nothing is held",
    "cli/fleet_roll.py READY_S": "a time; the engine behind it is one",
    "cli/engine_fleet.py LATE_START_S": "a time; nothing is held",
    "cli/fleet_acts.py RESTART_WAIT_S": "a time; the restart behind it is one",
    "cli/settings.py ServerSettings.workers": "a number of the operator's, checked when it is read",
    "serving/service.py INLINE_BODY_BYTES": "a choice between two ways of the same work; nothing is held",
    "cli/settings.py ServerSettings.status_hold_s": "a time; nothing is held",
    "cli/settings.py ServerSettings.heartbeat_s": "a time; nothing is held",
    "engines/local/supervisor.py SupervisorSettings.start_timeout_s": "a time; the process behind it is one",
    "cli/worker_control.py ASK_TIMEOUT_S": "a time; the question behind it is one",
    "lifecycle/quota_account.py MAX_RETRY_AFTER_S": "a time in a header; nothing is held",
    "cli/settings.py ServerSettings.drain_delay_s": "a time; nothing is held",
    "cli/engine_acts.py FLUSH_TIMEOUT_S": "a time; the answers that are waited for have a bound of their own",
}
