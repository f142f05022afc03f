"""Where faults go that were contained to one request."""

import logging

_log = logging.getLogger(__name__)


def log_fault(fault: BaseException) -> None:
    """Notes a fault of ours that hurt one request only."""
    _log.error("a fault was contained to one request", exc_info=fault)
