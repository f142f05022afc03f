"""Which test pushes each bound of grammars past its maximum (see `limit_proofs.py`)."""

GRAMMAR_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "grammar/test_ebnf_bounds.py": {
        "counts_beyond_the_bound_are_refused": ("grammar/xgrammar/schema_ebnf.py MAX_COUNTED",),
        "a_grammar_that_is_too_large_is_refused": ("grammar/xgrammar/schema_ebnf.py MAX_EBNF_BYTES",),
        "cases_that_multiply_beyond_the_bound_are_refused": ("grammar/xgrammar/schema_cases.py MAX_CASES",),
        "groups_nested_beyond_the_bound_are_refused": ("grammar/patterns/regex_tree.py MAX_REGEX_DEPTH",),
    },
    "grammar/test_counted_lengths.py": {
        "too_many_lengths_beside_each_other_are_refused": ("grammar/schema/counted_lengths.py MAX_COUNTED_LENGTHS",),
        "the_bound_is_the_sum_and_each_length_counts_so_far_only": ("grammar/schema/counted_lengths.py MOST_FOLLOWED",),
    },
    "grammar/test_hostile_grammars.py": {
        "a_pattern_that_takes_too_much_work_for_one_mask_ends_in_an_error": (
            "grammar/lark/llguidance_limits.py STEP_FUEL",
        ),
        "deep_schemas_are_refused_by_their_limit": (
            "grammar/json_text.py MAX_SCHEMA_BYTES",
            "grammar/json_text.py MAX_SCHEMA_DEPTH",
        ),
        "a_schema_with_too_many_parts_is_refused": ("grammar/json_text.py MAX_SCHEMA_NODES",),
        "too_many_combinations_are_refused": ("grammar/schema/lowering.py MAX_COMBINATIONS",),
        "circles_of_references_end_in_a_refusal": ("grammar/schema/disjoint.py MAX_PROOF_STEPS",),
        "a_pattern_that_explodes_is_refused_or_works_within_its_limits": (
            "grammar/lark/llguidance_limits.py LEXER_FUEL",
        ),
        "references_that_lead_too_deep_are_refused_before_they_end_the_process": (
            "grammar/schema/lowered_bounds.py MAX_RULE_DEPTH",
        ),
        "objects_of_too_many_properties_are_refused": ("grammar/schema/lowered_bounds.py MAX_PROPERTIES",),
        "multiples_with_too_many_remainders_are_refused": ("grammar/schema/lowered_bounds.py MAX_MULTIPLE",),
        "long_chains_and_deep_brackets_of_lark_are_refused_before_they_end_the_process": (
            "grammar/lark/lark_bounds.py MAX_LARK_RULES",
            "grammar/lark/lark_bounds.py MAX_LARK_DEPTH",
        ),
        "a_grammar_that_reads_a_text_in_ever_more_ways_ends_in_an_error_and_not_in_a_hang": (
            "grammar/lark/llguidance_limits.py MAX_STEP_ITEMS",
            "grammar/lark/llguidance_limits.py MAX_ROW_ITEMS",
        ),
        "white_space_between_tokens_ends": ("grammar/json_text.py MAX_WHITESPACE",),
    },
    "grammar/test_compile_cache.py": {
        "bounds_and_counts_hold_whatever_happens": ("engine_process/compile_pool.py PoolLimits.max_bytes",),
    },
    "grammar/test_composite_grammar.py": {
        "parts_that_say_nothing_are_refused": ("grammar/composite/composite_grammar.py MAX_REPEATS",),
    },
}
