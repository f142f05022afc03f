"""Patience: when a replica without an engine is one that Serve had better replace.

The server restarts an engine that died by itself, and answers 503 meanwhile; a new replica would only load the same
model again. So a replica is sick when it has been without an engine for longer than a restart may take. Pure.
"""

from collections.abc import Mapping

MIN_S, MAX_S, DEFAULT_S = 1.0, 86_400.0, 120.0
_KEY = "unready_patience_s"


class UserConfigError(Exception):
    """`user_config` of the deployment cannot be used; the message names the member."""


class Patience:
    """Asked every time that Serve asks; `now` is an instant of the monotonic clock."""

    def __init__(self) -> None:
        self.patience_s = DEFAULT_S
        self._since: float | None = None

    def reconfigure(self, user_config: object) -> None:
        """Takes `user_config`. Raises UserConfigError, and changes nothing then."""
        if not isinstance(user_config, Mapping):
            raise UserConfigError(f"user_config must be a table, got {user_config!r}.")
        for name in user_config:
            if name != _KEY:
                advice = "Settings are read once: put them under args.settings, and Serve replaces the replicas."
                raise UserConfigError(f"There is no {name} in user_config, only {_KEY}. {advice}")
        value = user_config.get(_KEY, DEFAULT_S)
        if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_S <= value <= MAX_S:
            raise UserConfigError(f"user_config.{_KEY} must be a number of seconds, {MIN_S:g} to {MAX_S:g}.")
        self.patience_s = float(value)

    def is_over(self, *, is_ready: bool, now: float) -> bool:
        """Whether the replica has been without an engine for longer than its patience."""
        if is_ready:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since > self.patience_s
