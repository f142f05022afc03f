"""What earlier starts found out about this machine and model, in one small file.

A file that is missing, damaged or of another kind is as good as an empty one: the worst is to measure again.
"""

import contextlib
import hashlib
import os
import platform
import tempfile
from pathlib import Path

import msgspec

from tidegate.backends.llama_cpp.calibration import Calibration

MAX_ENTRIES = 64
"""Models and ways to run them that are remembered; the oldest goes first."""


def calibration_key(*parts: object) -> str:
    """Returns a name for a model, a way to run it, and this machine: the same parts, the same name."""
    machine = (platform.machine(), _processor_name(), *parts)
    return hashlib.sha256("\0".join(map(str, machine)).encode()).hexdigest()[:32]


def read_calibration(path: Path, key: str) -> Calibration | None:
    """Returns what is remembered under `key`, or None."""
    return _read_all(path).get(key)


def write_calibration(path: Path, key: str, found: Calibration) -> None:
    """Remembers what was found. A file that cannot be written is left as it is: nothing depends on it."""
    entries = _read_all(path)
    entries.pop(key, None)
    entries[key] = found
    kept = dict(list(entries.items())[-MAX_ENTRIES:])
    with contextlib.suppress(OSError):
        number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(kept)))
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _read_all(path: Path) -> dict[str, Calibration]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Calibration])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
