"""Keys of a server under test, made in its state folder as `tidegate keys` makes them."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.cli.state_folder import KEYS_FILE
from tidegate.lifecycle.key_policy import KeyRecord
from tidegate.lifecycle.key_text import KEY_ENTROPY_BYTES, digest_of, make_key
from tidegate.lifecycle.principal import Principal
from tidegate.stores.sqlite_keys import SqliteKeys


def add_key(state_dir: str | Path, name: str, *, expires_at: float | None = None, **fields: Any) -> str:
    """Makes a key and returns it; `fields` are those of `Principal`."""
    key_id, key = make_key(os.urandom(KEY_ENTROPY_BYTES))
    principal = replace(Principal(key_id, name), **fields)
    keys_in(state_dir).create(KeyRecord(principal, digest_of(key), time.time(), expires_at))
    return key


def revoke_key(state_dir: str | Path, name: str) -> None:
    """Revokes the living key of a name."""
    store = keys_in(state_dir)
    [key_id] = [
        record.principal.key_id
        for record in store.list_keys()
        if record.principal.name == name and record.revoked_at is None
    ]
    assert store.revoke(key_id, time.time())


def keys_in(state_dir: str | Path) -> SqliteKeys:
    return SqliteKeys(Path(state_dir) / KEYS_FILE)


def bearing(key: str) -> dict[str, str]:
    """Returns the headers of a caller that has a key."""
    return {"Authorization": f"Bearer {key}"}
