"""Which tests push the bounds of deployments past their maximum, as in `limit_proofs.py`."""

DEPLOY_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "deploy/test_systemd_files.py": {
        "running_requests_have_all_of_their_time_before_systemd_kills": ("cli/service_manager.py END_MARGIN_S",),
    },
    "serve_app/test_replica_app.py": {
        "a_request_that_does_not_end_is_cancelled_itself": ("serve_app/replica_app.py LEAVE_S",),
    },
    "serve_app/test_arguments.py": {
        "patience_ends_only_when_the_engine_is_away_for_long": ("serve_app/patience.py DEFAULT_S",),
        "a_wrong_user_config_is_named_and_changes_nothing": ("serve_app/patience.py MAX_S",),
    },
}
