"""Where the server keeps what outlives it: keys and recorded answers. The folder belongs to this user alone."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from tidegate.cli.settings import Settings

KEYS_FILE = "keys.db"
CALIBRATION_FILE = "calibration.json"


class StateFolderError(Exception):
    """There is no folder for state; the message says why, and what to do."""


def locate_state_folder(settings: Settings, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns `server.state_dir`, else `tidegate` in XDG_STATE_HOME, else `~/.local/state/tidegate`. Makes nothing.

    Raises StateFolderError when nobody says where the home folder is.
    """
    given = settings.server.state_dir
    if given:
        return _expand(given)
    state_home = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(state_home):  # a relative one is to be ignored, says the XDG specification
        return Path(state_home) / "tidegate"
    return _expand("~/.local/state/tidegate")


def locate_keys_file(settings: Settings, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns `auth.keys_file`, else a file in the state folder. Makes nothing. Raises StateFolderError."""
    given = settings.auth.keys_file
    return _expand(given) if given else locate_state_folder(settings, environment) / KEYS_FILE


def make_private_folder(folder: Path) -> Path:
    """Returns the folder, made with mode 0700 where it is absent.

    Raises StateFolderError when it cannot be made, or when everybody could put files of theirs into it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise StateFolderError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    if mode & 0o002 and not mode & stat.S_ISVTX:
        raise StateFolderError(f"Everybody may write into {folder}; run: chmod 700 {folder}")
    return folder


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise StateFolderError("There is no home folder to keep state in; set server.state_dir.") from None
