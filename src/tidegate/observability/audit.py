"""The audit log: one line for each attempt to change the server through its admin listener, done or refused."""

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.observability.redact import clean_text


class AdminAct(msgspec.Struct, frozen=True, kw_only=True):
    """Who wanted what, and what became of it.

    `action` is a route's pattern and `target` the request that it named, "" where there is none. `peer` is the
    address of the far end of the connection, `credential` the name of what it showed, never the secret. `outcome` is
    "done" or the public code of the refusal.
    """

    action: str
    target: str
    peer: str | None
    credential: str
    request_id: str
    status: int
    outcome: str


class AuditLog:
    """Writes to the log at `warning`: acts are few, and must not vanish where somebody wants less of the log."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger

    def write(self, act: AdminAct) -> None:
        """Writes one line."""
        fields = msgspec.structs.asdict(act)
        fields["target"] = clean_text(act.target, 128)
        self._logger.warning("admin act", **fields)
