"""Which test pushes each bound of the reports of the conformance suite past its maximum (see `limit_proofs.py`)."""

REPORT_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "conformance/test_report_json.py": {
        "a_body_of_a_megabyte_is_cut_in_the_middle_and_said_so": (
            "conformance/reports/transcripts.py MAX_RESPONSE_BYTES",
        ),
        "a_case_that_passed_keeps_less": ("conformance/reports/transcripts.py MAX_PASSED_RESPONSE_BYTES",),
        "of_a_case_that_passed_the_first_and_last_are_told_and_the_rest_counted": (
            "conformance/reports/transcripts.py MAX_PASSED_TRANSCRIPTS",
            "conformance/reports/transcripts.py MAX_PASSED_REQUEST_BYTES",
            "conformance/reports/transcripts.py MAX_PASSED_EVENTS",
            "conformance/reports/spans.py MAX_SPANS",
            "conformance/reports/builder.py MAX_PASSED_COMMANDS",
            "conformance/reports/builder.py MAX_PASSED_BODY_BYTES",
        ),
        "a_large_request_and_many_answers_are_cut_to_the_bound_of_a_case": (
            "conformance/reports/transcripts.py MAX_REQUEST_BYTES",
            "conformance/reports/transcripts.py MAX_CASE_BYTES",
        ),
        "what_shows_the_fault_is_kept_first": ("conformance/reports/transcripts.py MAX_TRANSCRIPTS",),
        "events_beyond_the_bound_are_left_out_of_the_middle": (
            "conformance/reports/transcripts.py MAX_EVENTS",
            "conformance/reports/transcripts.py MAX_EVENT_CHARS",
            "conformance/reports/transcripts.py MAX_READS",
        ),
        "faults_are_bounded_and_counted": (
            "conformance/reports/builder.py MAX_FAULTS",
            "conformance/reports/builder.py MAX_FAULT_CHARS",
        ),
    },
    "conformance/test_report_html.py": {
        "however_much_fails_all_exchanges_share_the_room_of_the_page": (
            "conformance/reports/page_room.py MAX_PAGE_BYTES",
            "conformance/reports/page_room.py MAX_EXCHANGE_BYTES",
            "conformance/reports/page_room.py MIN_EXCHANGE_BYTES",
        ),
        "the_exchanges_that_faults_name_are_shown_before_others": ("conformance/reports/page_room.py MAX_EXCHANGES",),
        "thousands_of_events_and_megabytes_stay_a_page_of_bounded_size": (
            "conformance/reports/page_room.py MAX_EVENT_CHARS",
        ),
        "of_a_case_that_told_nothing_little_is_shown": (
            "conformance/reports/page_room.py MAX_UNTOLD_EXCHANGES",
            "conformance/reports/page_room.py MAX_UNTOLD_BYTES",
        ),
        "of_a_case_that_passed_the_beginning_of_one_answer_is_shown": (
            "conformance/reports/page_room.py MAX_PASSED_EXCHANGES",
            "conformance/reports/page_room.py MAX_PASSED_BYTES",
        ),
    },
    "conformance/test_diff_meaning.py": {
        "thousands_of_differences_are_counted_and_long_values_cut": (
            "conformance/diff/report_lines.py MAX_LISTED",
            "conformance/diff/report_html.py MAX_VALUE",
        ),
    },
    "conformance/test_curl_line.py": {
        "a_large_body_is_named_and_not_spelled": ("conformance/reports/curl_line.py MAX_CURL_BODY_BYTES",),
    },
    "conformance/test_reports_for_machines.py": {
        "markdown_is_bounded_and_says_what_is_missing": ("conformance/reports/markdown.py MAX_MARKDOWN_BYTES",),
        "the_summary_counts_the_failures_that_it_does_not_tell": ("conformance/reports/terminal.py MAX_FAILURES",),
    },
}
