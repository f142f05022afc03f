"""Which tests push the bounds of what is kept of an engine on Ray past their maximum, as in `limit_proofs.py`."""

RAY_PROOFS: dict[str, dict[str, tuple[str, ...]]] = {
    "engines_ray/test_session_rules.py": {
        "unconfirmed_bytes_beyond_the_bound_are_congestion": ("engines/ray/unacknowledged.py MAX_UNCONFIRMED_BYTES",),
        "an_actor_that_is_only_busy_is_not_buried": ("engines/ray/unacknowledged.py MAX_RESENT",),
        "batches_that_wait_for_one_before_them_are_bounded": ("engines/ray/command_order.py MAX_EARLY",),
        "a_lease_ends_with_silence_and_not_before": ("cli/ray_section.py RaySettings.lease_s",),
    },
    "engines_ray/test_host_faults.py": {
        "servers_at_one_engine_are_bounded": ("engines/ray/engine_host.py MAX_SESSIONS",),
        "a_server_that_leaves_too_much_unread_is_given_up": ("engines/ray/host_session.py MAX_UNREAD_DELTAS",),
        "signs_of_life_do_not_pile_up": ("engines/ray/ray_channel.py MAX_BEATS_AHEAD",),
        "a_step_of_many_outputs_leaves_the_loop_to_others": ("engines/ray/ray_channel.py SLICE_DELTAS",),
    },
}

RAY_REASONS = {
    "engines/ray/ray_door.py MAX_CONCURRENT_CALLS": "handed to Ray, which makes further calls wait",
    "engines/ray/ray_door.py UNREAD_BATCHES": "handed to Ray, which holds the actor's stream; what waits is counted",
    "cli/ray_section.py RaySettings.heartbeat_s": "a time between two looks; nothing is held",
    "engines/ray/ray_link.py LinkSettings.max_wait_s": "a time between two looks; nothing is held",
    "engines/ray/engine_actor.py AWAY_S": "a wait; the engine behind it is one",
    "cli/ray_keeper.py LEAVE_S": "a wait; an engine that others use goes on after it",
    "cli/ray_keeper.py RESTART_SEEN_S": "a time of an operator's; the restart behind it is one",
}
