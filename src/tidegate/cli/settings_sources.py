"""From file, environment and flags to one `Settings`, in that order of increasing strength.

Every value remembers where it came from. An unknown key is an error that names the nearest known one: a setting that
is silently ignored is worse than one that is refused.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tidegate.cli.settings import SECTIONS, EngineEntry, Settings

ENV_PREFIX = "TIDEGATE_"
DEFAULT_FILE = "tidegate.toml"
ENGINES = "engines"
ENTRY_SECTIONS = ("model", "engine")
"""The sections whose settings an `[[engines]]` table may give for one engine."""
ENGINE_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class SettingsError(Exception):
    """A setting cannot be used; the message says which, from where, and what to do."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Effective settings, and for each `section.key` that is not a default where it came from."""

    settings: Settings
    origins: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    origin: str


def resolve(
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    is_file_required: bool,
    flag_names: Mapping[str, str] | None = None,
) -> Resolved:
    """Returns the settings. `flags` maps `section.key` to values; None values are absent flags.

    `flag_names` says how a flag is spelled, for messages. Variables without a double underscore are not settings:
    Kubernetes sets some like TIDEGATE_PORT for a service of our name.

    Raises SettingsError for unreadable files, unknown sections or keys, and values out of range.
    """
    given: dict[str, _Given] = {}
    if file is not None:
        given |= _from_file(file, is_required=is_file_required)
    given |= _from_environment(environment)
    for name, value in flags.items():
        if value is not None and value != ():
            given[name] = _Given(value, (flag_names or {}).get(name, f"flag {name}"))
    sections = {section: _build_section(section, given) for section in SECTIONS}
    engines = () if file is None else _engine_entries(file, given, is_required=is_file_required)
    settings = msgspec.structs.replace(msgspec.convert(sections, Settings), engines=engines)
    origins = {name: one.origin for name, one in given.items()}
    if engines:
        origins[ENGINES] = str(file)
    return Resolved(settings, origins)


def _from_file(file: Path, *, is_required: bool) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for section, keys in _read_file(file, is_required=is_required).items():
        if section == ENGINES:
            continue
        _check_section(section, f"in {file}")
        if not isinstance(keys, dict):
            raise SettingsError(f"[{section}] in {file} must be a table.")
        for key, value in keys.items():
            _check_key(section, key, f"in {file}")
            given[f"{section}.{key}"] = _Given(value, str(file))
    return given


def _engine_entries(file: Path, given: dict[str, _Given], *, is_required: bool) -> tuple[EngineEntry, ...]:
    """Returns the `[[engines]]` tables. What a table leaves out is as `[model]` and `[engine]` say."""
    tables = _read_file(file, is_required=is_required).get(ENGINES, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"engines in {file} must be tables, each under its own [[{ENGINES}]].")
    return tuple(
        _engine_entry(table, f"[[{ENGINES}]] number {i + 1} in {file}", given) for i, table in enumerate(tables)
    )


def _engine_entry(table: dict[str, object], where: str, given: dict[str, _Given]) -> EngineEntry:
    name = table.get("name")
    if not isinstance(name, str) or ENGINE_NAME.fullmatch(name) is None:
        raise SettingsError(f"{where} needs a name of 1 to 64 letters, digits, '.', '_' or '-', got {name!r}.")
    own = dict(given)
    for key, value in table.items():
        if key == "name":
            continue
        section = next((section for section in ENTRY_SECTIONS if key in _keys(section)), None)
        if section is None:
            known = [known for section in ENTRY_SECTIONS for known in _keys(section)]
            raise SettingsError(f"There is no setting {key} for {where}.{_nearest(key, known)}")
        own[f"{section}.{key}"] = _Given(value, where)
    model, engine = (_build_section(section, own) for section in ENTRY_SECTIONS)
    return msgspec.convert({"name": name, "model": model, "engine": engine}, EngineEntry)


def _keys(section: str) -> list[str]:
    return [field.name for field in msgspec.structs.fields(SECTIONS[section])]


def _read_file(file: Path, *, is_required: bool) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        if is_required:
            raise SettingsError(f"The settings file {file} does not exist.") from None
        return {}
    except OSError as error:
        raise SettingsError(f"The settings file {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {file} is not valid TOML: {error}.") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for name, value in sorted(environment.items()):
        if not name.startswith(ENV_PREFIX) or "__" not in name:
            continue
        section, _, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
        _check_section(section, f"in the environment variable {name}")
        _check_key(section, key, f"in the environment variable {name}")
        given[f"{section}.{key}"] = _Given(_parse_text(section, key, value), f"environment {name}")
    return given


def _parse_text(section: str, key: str, value: str) -> object:
    """Environment values are text: lists are comma separated, the rest is converted by type later."""
    field = next(field for field in msgspec.structs.fields(SECTIONS[section]) if field.name == key)
    if isinstance(field.default, tuple):
        return [part.strip() for part in value.split(",") if part.strip()]
    if field.default_factory is dict:
        try:
            return msgspec.json.decode(value.encode(), type=dict[str, Any])
        except msgspec.MsgspecError:
            raise SettingsError(
                f"{section}.{key} in the environment must be an object of JSON, got {value!r}."
            ) from None
    return value


def _build_section(section: str, given: Mapping[str, _Given]) -> msgspec.Struct:
    kind = SECTIONS[section]
    known = {field.name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, object] = {}
    for key in known:
        one = given.get(f"{section}.{key}")
        if one is None:
            continue
        try:
            converted = msgspec.convert({key: one.value}, kind, strict=not one.origin.startswith("environment"))
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at ")[0]
            raise SettingsError(f"{section}.{key} from {one.origin}: {reason}, got {one.value!r}.") from None
        values[key] = getattr(converted, key)
    return kind(**values)


def _check_section(section: str, where: str) -> None:
    if section not in SECTIONS:
        raise SettingsError(f"There is no section [{section}] {where}.{_nearest(section, list(SECTIONS))}")


def _check_key(section: str, key: str, where: str) -> None:
    known = _keys(section)
    if key not in known:
        raise SettingsError(f"There is no setting {section}.{key} {where}.{_nearest(key, known)}")


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else f" Known are: {', '.join(sorted(known))}."
