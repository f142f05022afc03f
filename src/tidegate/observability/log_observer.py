"""LogObserver: facts become log records, one for each request's end and each change of the engine."""

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.observability.observer import EngineChanged, NullObserver, RequestEnded


class LogObserver(NullObserver):
    """Logs ends and refusals at `info` (server faults at `error`), other HTTP responses at `debug`, tokens never."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger

    def request_refused(self, route: str, status: int, code: str) -> None:
        log = self._logger.error if status == 500 else self._logger.info
        log("request refused", route=route, status=status, code=code)

    def request_ended(self, facts: RequestEnded) -> None:
        fields = {name: _rounded(value) for name, value in msgspec.structs.asdict(facts).items() if value is not None}
        is_fault = facts.code in {"internal_error", "engine_lost", "engine_refused"}
        log = self._logger.error if is_fault else self._logger.info
        log("request ended", **fields)

    def engine_changed(self, facts: EngineChanged) -> None:
        log = self._logger.info if facts.is_ready else self._logger.warning
        log("engine available" if facts.is_ready else "engine gone", **msgspec.structs.asdict(facts))

    def http_response(self, route: str, method: str, status: int) -> None:
        self._logger.debug("http response", route=route, method=method, status=status)


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
