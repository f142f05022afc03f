"""Which tests push the bounds of the engine past their maximum, as in `limit_proofs.py`."""

ENGINE_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "backends_llama/test_calibration.py": {
        "a_large_model_is_timed_no_longer_than_the_budget_and_one_step": ("backends/llama_cpp/calibrate.py BUDGET_S",),
        "a_bounded_number_is_remembered_and_the_oldest_goes_first": (
            "backends/llama_cpp/calibration_file.py MAX_ENTRIES",
        ),
    },
    "sizing/test_memory_plan.py": {
        "what_cannot_be_is_refused_with_the_numbers": ("sizing/llama_cpp_options.py MAX_SEQUENCES",),
        "a_long_context_is_cut_to_what_fits_when_nobody_asked_for_it": ("sizing/memory_plan.py DEFAULT_MODEL_LEN",),
        "unknown_memory_gets_the_default_cache": ("sizing/memory_plan.py DEFAULT_CACHE_BYTES",),
        "without_that_room_the_cache_is_one_pool_as_large_as_memory_allows": ("sizing/memory_plan.py CACHE_SHARE",),
    },
    "sizing/test_pooling_plan.py": {
        "the_shape_follows_from_the_file_and_the_options": (
            "sizing/pooling_plan.py DEFAULT_INPUT_TOKENS",
            "sizing/pooling_plan.py MAX_PASS_TOKENS",
        ),
        "state_that_is_a_running_summary_is_read_one_prompt_at_a_time": ("sizing/pooling_plan.py MAX_BATCH_INPUTS",),
    },
    "backends_llama/test_weights.py": {
        "a_large_file_is_sampled_and_its_digest_says_so": ("backends/llama_cpp/weights.py WHOLE_BYTES",),
    },
    "core/test_scheduling.py": {
        "more_choices_than_rows_run_in_waves": ("cli/settings.py EngineSettings.max_sequences",),
        "a_long_prompt_never_stalls_a_running_stream": ("engine_process/wiring.py PREFILL_CHUNK_TOKENS",),
    },
    "core/test_step.py": {
        "a_prompt_longer_than_a_step_enters_in_slices": ("sizing/step_size.py STEP_TOKENS_CPU",),
        "prompt_logprobs_come_once_for_each_token_the_first_without_one": (
            "core/budget.py StepLimits.max_scored_rows",
        ),
    },
    "core_speculative/test_drafts_in_steps.py": {
        "a_quoted_text_takes_few_steps": ("cli/settings.py EngineSettings.max_draft_tokens",),
    },
    "core_speculative/test_prompt_lookup.py": {
        "nothing_is_guessed_before_the_prompt_is_read_which_takes_parts": (
            "core/speculative/prompt_lookup.py READ_AHEAD",
        ),
        "the_longest_recent_match_is_continued_after_every_token": (
            "core/speculative/prompt_lookup.py NUM_PLACES",
            "core/speculative/prompt_lookup.py LONGEST_MATCH",
        ),
    },
    "core_speculative/test_pace.py": {
        "a_sequence_whose_guesses_fail_rests_longer_each_time_and_is_tried_again": (
            "core/speculative/pace.py LONGEST_REST",
        ),
    },
}
