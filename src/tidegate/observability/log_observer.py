"""LogObserver: facts become log records: changes of the engine, and faults that no access log would show."""

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.observability.access_log import FAULT_CODES
from tidegate.observability.observer import EngineChanged, NullObserver, RequestEnded


class LogObserver(NullObserver):
    """`has_access_log`: each request has a line already. Other HTTP responses at `debug`, tokens never."""

    def __init__(self, logger: FilteringBoundLogger, *, has_access_log: bool = False) -> None:
        self._logger = logger
        self._has_access_log = has_access_log

    def request_refused(self, route: str, status: int, code: str) -> None:
        if status == 500 and not self._has_access_log:
            self._logger.error("request refused", route=route, status=status, code=code)

    def request_ended(self, facts: RequestEnded) -> None:
        if facts.code in FAULT_CODES and not self._has_access_log:
            self._logger.error("request failed", route=facts.route, code=facts.code, request_id=facts.request_id)

    def engine_changed(self, facts: EngineChanged) -> None:
        log = self._logger.info if facts.is_ready else self._logger.warning
        log("engine available" if facts.is_ready else "engine gone", **msgspec.structs.asdict(facts))

    def http_response(self, route: str, method: str, status: int) -> None:
        self._logger.debug("http response", route=route, method=method, status=status)
