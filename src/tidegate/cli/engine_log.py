"""What an engine says, taken into the server's log: one stream of lines, one format."""

import json
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from tidegate.observability.logs import LEVELS

_OWN_MEMBERS = ("at", "level", "event")


def note_to(logger: FilteringBoundLogger) -> Callable[[str], None]:
    """Returns what takes a note on an engine that an operator should read."""
    return lambda note: logger.warning("engine note", note=note)


def relay_to(logger: FilteringBoundLogger) -> Callable[[bytes], None]:
    """Returns what takes a line of the engine's standard error. A line that is not ours is kept as text."""

    def write(line: bytes) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                logger.warning("engine output", source="engine", text=text)
            return
        facts = {name: value for name, value in record.items() if name not in _OWN_MEMBERS}
        level = LEVELS.get(str(record.get("level")), LEVELS["info"])
        logger.log(level, record["event"], **facts)

    return write
