"""The ledger that the settings ask for: SQLite in the state folder, Redis, or none."""

import os
from pathlib import Path
from typing import Protocol

from tidegate.cli.settings import Settings
from tidegate.cli.state_folder import StateFolderError, locate_state_folder, make_private_folder
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Ledger, LedgerBroken
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.serving.server_facts import IdempotencyFacts
from tidegate.stores.ledger_file import LedgerFile
from tidegate.stores.redis_client import RedisUnusable
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.stores.redis_start import RedisUse, check_redis
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


def ledger_facts(rules: LedgerRules) -> IdempotencyFacts | None:
    """Returns what `/v1/contract` says of the ledger; None where there is none."""
    if rules.store == "off":
        return None
    return IdempotencyFacts(
        rules.store, rules.retention_s, rules.max_entries, rules.max_bytes, rules.max_answer_bytes, rules.when_full
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


def locate_ledger_file(settings: Settings) -> Path:
    """Returns `idempotency.file`, else a file in the state folder. Makes nothing. Raises StateFolderError."""
    given = settings.idempotency.file
    return Path(given).expanduser().absolute() if given else locate_state_folder(settings).absolute() / FILE_NAME


def open_ledger_file(settings: Settings) -> LedgerFile:
    """Opens the SQLite file of the settings' choice. Raises LedgerBroken."""
    chosen = settings.idempotency
    limits = LedgerLimits(chosen.retention_s, chosen.max_entries, chosen.max_bytes)
    owner = f"{os.getpid()}-{entropy(_OWNER_ENTROPY_BYTES).hex()}"
    try:
        path = locate_ledger_file(settings)
        make_private_folder(path.parent)
    except StateFolderError as error:
        raise LedgerBroken(f'{error} Or set idempotency.store = "off".') from None
    return LedgerFile(path, limits, SystemClock().wall, owner)


def check_ledger(settings: Settings) -> list[str]:
    """Returns what the operator should know. Raises LedgerBroken where it cannot be opened, or never used."""
    chosen = settings.idempotency
    if chosen.store == "sqlite":
        open_ledger_file(settings).close()
        return []
    open_ledger(settings)  # connects when it is first asked
    if chosen.store == "off" or chosen.redis_url is None:
        return []
    try:
        return check_redis(chosen.redis_url, RedisUse("idempotency.redis_url", keeps=True))
    except RedisUnusable as error:
        raise LedgerBroken(str(error)) from None
