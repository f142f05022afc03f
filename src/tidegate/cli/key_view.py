"""A key as people and scripts see it: all that is stored except the digest."""

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.point_in_time import write_instant
from tidegate.lifecycle.key_policy import KeyRecord, KeyState
from tidegate.lifecycle.principal import HIGHEST_PRIORITY, LOWEST_PRIORITY

_PIPED_WIDTH = 200
_COLOURS = {KeyState.ACTIVE: "green", KeyState.EXPIRED: "yellow", KeyState.REVOKED: "red"}


def key_as_json(record: KeyRecord, wall: float) -> dict[str, object]:
    """Returns the fields of `--json`; null where there is no restriction, or where something has not happened."""
    principal = record.principal
    return {
        "id": principal.key_id,
        "name": principal.name,
        "state": record.state(wall).value,
        "models": sorted(principal.models) if principal.models is not None else None,
        "routes": sorted(principal.routes) if principal.routes is not None else None,
        "priority_min": principal.priority_min,
        "priority_max": principal.priority_max,
        "concurrency": principal.quotas.concurrency,
        "requests_per_minute": principal.quotas.requests_per_minute,
        "tokens_per_minute": principal.quotas.tokens_per_minute,
        "deadline_max_ms": principal.deadline_max_ms,
        "created_at": write_instant(record.created_at),
        "expires_at": write_instant(record.expires_at),
        "revoked_at": write_instant(record.revoked_at),
        "last_used_at": write_instant(record.last_used_at),
    }


def print_key(record: KeyRecord, wall: float) -> None:
    """Prints one key, a line for each field."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in key_as_json(record, wall).items():
        words = ", ".join(value) if isinstance(value, list) else value
        table.add_row(Text(name.replace("_", " ")), Text("-" if words is None else str(words)))
    _console().print(table)


def print_table(records: list[KeyRecord], wall: float) -> None:
    """Prints one row for each key."""
    heads = ("ID", "name", "state", "may use", "quotas", "expires", "last used")
    table = Table(*heads, box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for record in records:
        state = record.state(wall)
        table.add_row(
            Text(record.principal.key_id),
            Text(record.principal.name),
            Text(state.value, style=_COLOURS[state]),
            Text(_describe_rights(record)),
            Text(_describe_quotas(record)),
            Text(write_instant(record.expires_at) or "never"),
            Text(write_instant(record.last_used_at) or "never"),
        )
    _console().print(table)


def _describe_rights(record: KeyRecord) -> str:
    principal = record.principal
    names = [*sorted(principal.models or ()), *sorted(principal.routes or ())]
    if (principal.priority_min, principal.priority_max) != (HIGHEST_PRIORITY, LOWEST_PRIORITY):
        names.append(f"priority {principal.priority_min} to {principal.priority_max}")
    return ", ".join(names) or "everything"


def _describe_quotas(record: KeyRecord) -> str:
    quotas, deadline_ms = record.principal.quotas, record.principal.deadline_max_ms
    words = {
        "at once": quotas.concurrency,
        "requests/min": quotas.requests_per_minute,
        "tokens/min": quotas.tokens_per_minute,
        "ms a request": deadline_ms,
    }
    return ", ".join(f"{value} {word}" for word, value in words.items() if value is not None) or "none"


def _console() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
