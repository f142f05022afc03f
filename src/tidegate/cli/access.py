"""Who may call: keys and the admin credential as a server uses them, and what is found of them before it starts."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate.cli.check_access import OLD_TOKEN_VARIABLE, AccessFacts, check_access
from tidegate.cli.finding import Level
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import is_loopback
from tidegate.cli.state_folder import StateFolderError, locate_keys_file
from tidegate.clock import Clock
from tidegate.http.authorise import (
    MAX_CREDENTIAL_CHARS,
    Authorise,
    allow_everyone,
    authorise_by_credential,
    authorise_by_key,
)
from tidegate.lifecycle.key_policy import KeyState
from tidegate.lifecycle.key_text import digest_of
from tidegate.stores.key_file import KeyFileError
from tidegate.stores.live_keys import LiveKeys
from tidegate.stores.sqlite_keys import SqliteKeys
from tidegate.system import SystemClock

_log = logging.getLogger(__name__)

MIN_CREDENTIAL_CHARS = 32
_MAX_LINE_CHARS = MAX_CREDENTIAL_CHARS - len("Bearer ")
_CREDENTIAL = re.compile(r"[A-Za-z0-9._~+/=-]+")
_FORBIDDEN_MODE = 0o027
"""Others may do nothing with the file, and its group may read it: how secrets are mounted into containers."""


class AccessError(Exception):
    """The server would be open to more people than somebody has said, or cannot tell who calls."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of the two listeners. `close` lets go of the file of keys."""

    public: Authorise
    admin: Authorise
    keys: LiveKeys

    def close(self) -> None:
        self.keys.close()


def open_access(settings: Settings, clock: Clock) -> Access:
    """Returns the rules that the settings ask for. Raises AccessError."""
    try:
        keys = LiveKeys(locate_keys_file(settings), on_fault=_report_fault)
        keys.load(clock.now())
    except (StateFolderError, KeyFileError) as error:
        raise AccessError(str(error)) from None
    return Access(authorise_by_key(keys, clock), open_admin_access(settings), keys)


def open_admin_access(settings: Settings) -> Authorise:
    """Returns the rule of the admin listener. Raises AccessError when its credential cannot be read."""
    file = settings.auth.admin_token_file
    return allow_everyone if file is None else authorise_by_credential(digest_of(read_credential(Path(file))))


def read_credential(file: Path) -> str:
    """Returns the one line of the file of the admin credential. Raises AccessError; no message repeats the line."""
    try:
        with file.expanduser().open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(4096)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "it is no file"
        raise AccessError(f"The admin credential in {file} cannot be read: {reason}.") from None
    if mode & _FORBIDDEN_MODE:
        raise AccessError(f"Other users may read or change the admin credential; run: chmod 600 {file}")
    line = content.removesuffix(b"\n").removesuffix(b"\r").decode("latin-1")
    if not (MIN_CREDENTIAL_CHARS <= len(line) <= _MAX_LINE_CHARS and _CREDENTIAL.fullmatch(line)):
        raise AccessError(
            f"{file} must hold one line of {MIN_CREDENTIAL_CHARS} to {_MAX_LINE_CHARS} letters, digits and "
            "- . _ ~ + / = and nothing else."
        )
    return line


def refuse_exposure(settings: Settings) -> list[str]:
    """Returns what is worth a warning before the server starts. Raises AccessError for what keeps it from starting."""
    findings = check_access(gather_access_facts(settings), settings)
    for finding in findings:
        if finding.level is Level.PROBLEM:
            raise AccessError(f"{finding.found}; {finding.advice}")
    return [f"{finding.found}; {finding.advice}" for finding in findings if finding.level is Level.WARNING]


def gather_access_facts(settings: Settings, environment: Mapping[str, str] = os.environ) -> AccessFacts:
    """Looks at addresses, keys and the admin credential. Changes nothing; raises nothing."""
    keys_fault = credential_fault = None
    states: list[KeyState] = []
    try:
        wall = SystemClock().wall()
        states = [record.state(wall) for record in SqliteKeys(locate_keys_file(settings, environment)).list_keys()]
    except (StateFolderError, KeyFileError) as error:
        keys_fault = str(error)
    file = settings.auth.admin_token_file
    if file is not None:
        try:
            read_credential(Path(file))
        except AccessError as error:
            credential_fault = str(error)
    return AccessFacts(
        is_public=not is_loopback(settings.server.host),
        is_admin_public=not is_loopback(settings.server.admin_host),
        num_keys=len(states),
        num_active=states.count(KeyState.ACTIVE),
        keys_fault=keys_fault,
        has_credential=file is not None and credential_fault is None,
        credential_fault=credential_fault,
        has_token_variable=OLD_TOKEN_VARIABLE in environment,
    )


def _report_fault(reason: str) -> None:
    _log.error("keys cannot be read, the last ones hold for a minute: %s", reason)
