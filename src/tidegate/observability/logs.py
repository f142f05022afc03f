"""Log records: one line each on one stream, JSON for machines or plain words for a person at a terminal.

`build_logger` makes a logger and touches nothing else. `configure_logging` is for the composition root: it makes that
logger the process's default, and sends what libraries log through the same line format.

A write that fails is counted and forgotten: a server does not fall because nobody collects its logs. A write that
blocks blocks its caller; whoever pipes standard error somewhere must read it.
"""

import logging
import sys
import traceback
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO, cast

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from tidegate.observability.redact import clean_text, clean_value

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
MAX_TRACEBACK_LINES = 100
MAX_TRACEBACK_LINE_CHARS = 300

_COLORS = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31;1m"}
_RESET = "\x1b[0m"
_LABELS = "labels"

# structlog's own types for a record are open dictionaries of anything.
Record = MutableMapping[str, Any]


class LogFormat(StrEnum):
    AUTO = "auto"
    """Console when the stream is a terminal, JSON otherwise."""
    JSON = "json"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`level` is the least severe one shown. Raises ValueError for a level that does not exist."""

    level: str = "info"
    format: LogFormat = LogFormat.AUTO

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"log level {self.level!r} is none of {', '.join(LEVELS)}")


class LineLogger:
    """Writes finished lines. `num_lost` counts those that could not be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.num_lost = 0

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self.num_lost += 1

    log = debug = info = warning = error = critical = exception = msg


def build_logger(settings: LogSettings, stream: TextIO, wall: Callable[[], float]) -> FilteringBoundLogger:
    """Returns a logger that writes to `stream`. `wall` gives the time of a record, in seconds since the Unix epoch."""
    logger = structlog.wrap_logger(
        LineLogger(stream),
        processors=_processors(settings, stream, wall),
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
    )
    return cast("FilteringBoundLogger", logger.bind())


def configure_logging(settings: LogSettings, stream: TextIO, wall: Callable[[], float]) -> FilteringBoundLogger:
    """Makes `build_logger`'s logger the one of this process, for us and for libraries. Call once, at the start."""
    logger = build_logger(settings, stream, wall)
    structlog.configure(
        processors=_processors(settings, stream, wall),
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[settings.level]),
        logger_factory=lambda *_: LineLogger(stream),
    )
    root = logging.getLogger()
    root.handlers[:] = [LibraryHandler(logger)]
    root.setLevel(max(LEVELS[settings.level], logging.INFO))
    return logger


def log_labels(**labels: str) -> dict[str, object]:
    """Returns the `extra` of a record of the standard library's logging that shall have further fields."""
    return {_LABELS: labels}


class LibraryHandler(logging.Handler):
    """Passes the records of the standard library's logging on to a logger of ours."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = f"a record of {record.name} that cannot be formatted"
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        error = record.exc_info[1] if record.exc_info else None
        labels = getattr(record, _LABELS, {})
        self._logger.log(level, message, logger=record.name, exc_info=error, **labels)


def _processors(settings: LogSettings, stream: TextIO, wall: Callable[[], float]) -> list[Callable[..., Any]]:
    is_console = settings.format is LogFormat.CONSOLE or (settings.format is LogFormat.AUTO and stream.isatty())

    def stamp(_logger: object, method: str, record: Record) -> Record:
        stamped: Record = {
            "time": datetime.fromtimestamp(wall(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": "error" if method == "exception" else method,
        }
        return {**stamped, "event": record.pop("event", None), **record, **stamped}

    return [stamp, _show_exception, _clean, _render_console if is_console else _render_json]


def _show_exception(_logger: object, _method: str, record: Record) -> Record:
    """Replaces `exc_info` by the traceback's lines, without source values and with bounded messages."""
    exc_info = record.pop("exc_info", None)
    if not isinstance(exc_info, BaseException):
        exc_info = sys.exc_info()[1] if exc_info else None
    if exc_info is not None:
        shown = "".join(traceback.TracebackException.from_exception(exc_info, limit=40).format()).splitlines()
        record["traceback"] = shown[-MAX_TRACEBACK_LINES:]
    return record


def _clean(_logger: object, _method: str, record: Record) -> Record:
    lines = record.pop("traceback", None)
    cleaned: Record = {clean_text(name, 100): clean_value(name, value) for name, value in record.items()}
    if lines is not None:
        cleaned["traceback"] = [clean_text(line, MAX_TRACEBACK_LINE_CHARS) for line in lines]
    return cleaned


def _render_json(_logger: object, _method: str, record: Record) -> str:
    return msgspec.json.encode(record).decode()


def _render_console(_logger: object, _method: str, record: Record) -> str:
    level = record.pop("level")
    head = f"{record.pop('time')} {_COLORS.get(level, '')}{level:<8}{_RESET} {record.pop('event', '')}"
    lines = record.pop("traceback", [])
    fields = [f"{name}={value}" for name, value in record.items() if value is not None]
    return "\n    ".join([" ".join([head, *fields]), *lines])
