"""Recordings in a folder: writes a case as soon as it is done, and reads them all again."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.conformance.recording.format import (
    FORMAT,
    Manifest,
    Recording,
    RecordingError,
    decode_case,
    decode_manifest,
    encode_case,
    encode_manifest,
)
from tidegate.conformance.running.run_report import Result

MANIFEST = "manifest.json"
CASES = "cases"
MAX_FILE_BYTES = 512 * 1024 * 1024
_CASE_ID = re.compile(r"[a-z0-9_.]{1,120}")


class RecordingWriter:
    """Writes one recording. The manifest comes last: a folder without one is no recording."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder. Raises RecordingError where it holds something else, or cannot be written."""
        self._folder = folder
        try:
            (folder / CASES).mkdir(parents=True, exist_ok=True)
            strangers = [path.name for path in folder.iterdir() if path.name not in (MANIFEST, CASES)]
            if strangers:
                raise RecordingError(f"{folder} holds other files, like {strangers[0]}; give a folder of its own")
            (folder / MANIFEST).unlink(missing_ok=True)
            for path in (folder / CASES).glob("*.json"):
                path.unlink()
        except OSError as error:
            raise RecordingError(f"{folder}: {error.strerror}") from error

    def write_case(self, result: Result) -> None:
        """Writes what came of one case."""
        runs = tuple(result.case_runs())
        self._write(f"{CASES}/{result.case.id}.json", encode_case(result.case.id, runs, result.duration_s))

    def write_manifest(self, manifest: Manifest) -> None:
        """Ends the recording."""
        self._write(MANIFEST, encode_manifest(manifest))

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        path = self._folder / name
        part = path.with_suffix(".part")
        try:
            part.write_text(json.dumps(value, indent=1) + "\n", "ascii")
            part.replace(path)
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror}") from error


def read_recording(folder: Path) -> Recording:
    """Returns the recording in a folder. Raises RecordingError."""
    manifest = decode_manifest(_read(folder / MANIFEST))
    runs = {}
    durations_s = {}
    for case_id in manifest.cases:
        if not isinstance(case_id, str) or not _CASE_ID.fullmatch(case_id):
            raise RecordingError(f"{folder / MANIFEST}: {case_id!r} is no id of a case")
        name, case_runs, durations_s[case_id] = decode_case(_read(folder / CASES / f"{case_id}.json"))
        if name != case_id:
            raise RecordingError(f"{folder / CASES / case_id}.json is of the case {name!r}")
        runs[case_id] = case_runs
    return Recording(manifest, runs, durations_s)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RecordingError(f"{path} has more than {MAX_FILE_BYTES} bytes")
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RecordingError(f"{path} is missing: not a recording ({FORMAT}), or one that was not finished") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path} is not JSON: {error}") from error
