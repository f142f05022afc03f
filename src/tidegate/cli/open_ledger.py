"""The ledger that the settings ask for: SQLite in the state folder, Redis, or none."""

import os
import secrets
from pathlib import Path
from typing import Protocol

from tidegate.cli.settings import Settings
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Ledger, LedgerBroken
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.stores.ledger_file import LedgerFile
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.stores.sqlite_ledger import SqliteLedger
from tidegate.system import SystemClock, entropy

FILE_NAME = "answers.sqlite3"
_OWNER_ENTROPY_BYTES = 8


class StartableLedger(Ledger, Protocol):
    """A ledger whose work in the background begins with `start`, on the running event loop."""

    def start(self) -> None: ...


def ledger_rules(settings: Settings) -> LedgerRules:
    """Returns what callers are told about the ledger."""
    chosen = settings.idempotency
    return LedgerRules(
        store=chosen.store,
        retention_s=chosen.retention_s,
        max_entries=chosen.max_entries,
        max_bytes=chosen.max_bytes,
        max_answer_bytes=min(chosen.max_answer_bytes, chosen.max_bytes),
    )


def open_ledger(settings: Settings) -> StartableLedger | None:
    """Opens the ledger of this process; None where there is to be none. Raises LedgerBroken."""
    chosen = settings.idempotency
    limits = LedgerLimits(chosen.retention_s, chosen.max_entries, chosen.max_bytes)
    match chosen.store:
        case "off":
            return None
        case "redis":
            if chosen.redis_url is None:
                raise LedgerBroken('idempotency.store = "redis" needs idempotency.redis_url.')
            return RedisLedger(chosen.redis_url, limits, entropy)
        case "sqlite":
            return SqliteLedger(open_ledger_file(settings))


def open_ledger_file(settings: Settings) -> LedgerFile:
    """Opens the SQLite file of the settings' choice. Raises LedgerBroken."""
    chosen = settings.idempotency
    limits = LedgerLimits(chosen.retention_s, chosen.max_entries, chosen.max_bytes)
    path = Path(chosen.file).expanduser() if chosen.file is not None else _state_folder(settings) / FILE_NAME
    owner = f"{os.getpid()}-{secrets.token_hex(_OWNER_ENTROPY_BYTES)}"
    return LedgerFile(path.absolute(), limits, SystemClock().wall, owner)


def check_ledger(settings: Settings) -> None:
    """Raises LedgerBroken where the ledger could not be opened."""
    if settings.idempotency.store == "sqlite":
        open_ledger_file(settings).close()
    else:
        open_ledger(settings)  # connects when it is first asked


def _state_folder(settings: Settings) -> Path:
    if settings.server.state_dir is not None:
        return Path(settings.server.state_dir).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "tidegate"
