"""What a Serve configuration says under `args`, as settings; and what of it means nothing under Serve.

`args` has `config_file`, a settings file on every node that may run a replica, and `settings`, tables of settings over
it: `settings: {engine: {max_sequences: 16}}`. The environment stands between the two, as everywhere.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tidegate.cli.access import AccessError, refuse_exposure
from tidegate.cli.settings import SECTIONS, Settings
from tidegate.cli.settings_sources import Resolved, SettingsError, resolve

_KNOWN = ("config_file", "settings")
_REFUSED = {
    "server.workers": "Serve starts replicas: set num_replicas or autoscaling_config of the deployment",
    "tls.certificate_file": "Serve has the listener: give its http_options a certificate, or put a proxy in front",
    "tls.key_file": "Serve has the listener: give its http_options a certificate, or put a proxy in front",
}
_WITHOUT_EFFECT = ("server.host", "server.port", "server.http", "server.send_buffer_bytes", "server.unsent_bytes")


def read_arguments(args: Mapping[str, object], environment: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Returns the settings of a replica, and what is worth a warning. Raises SettingsError.

    The admin listener takes a free port unless one is named: several replicas may share a node.
    """
    for name in args:
        if name not in _KNOWN:
            raise SettingsError(f"There is no argument {name} in args. Known are: {', '.join(_KNOWN)}.")
    file, given = args.get("config_file"), args.get("settings", {})
    if file is not None and not isinstance(file, str):
        raise SettingsError(f"args.config_file must be the path of a settings file, got {file!r}.")
    flags = _flags(given)
    names = {name: f"args.settings.{name}" for name in flags}
    path = None if file is None else Path(file)
    resolved = resolve(path, environment, flags, is_file_required=True, flag_names=names)
    return _fit(resolved), [*_check(resolved), *_check_access(resolved.settings)]


def _flags(given: object) -> dict[str, object]:
    if not isinstance(given, Mapping):
        raise SettingsError(f"args.settings must be tables of settings, got {given!r}.")
    flags: dict[str, object] = {}
    for section, values in given.items():
        if section not in SECTIONS or not isinstance(values, Mapping):
            raise SettingsError(f"args.settings.{section} is no table of settings. Known are: {', '.join(SECTIONS)}.")
        known = [field.name for field in msgspec.structs.fields(SECTIONS[section])]
        for key, value in values.items():
            if key not in known:
                raise SettingsError(f"There is no setting {section}.{key} in args.settings.")
            flags[f"{section}.{key}"] = value
    return flags


def _fit(resolved: Resolved) -> Settings:
    settings = resolved.settings
    if "server.admin_port" in resolved.origins:
        return settings
    return msgspec.structs.replace(settings, server=msgspec.structs.replace(settings.server, admin_port=0))


def _check(resolved: Resolved) -> list[str]:
    for name, advice in _REFUSED.items():
        section, _, key = name.partition(".")
        value = getattr(getattr(resolved.settings, section), key)
        if value != getattr(SECTIONS[section](), key):
            raise SettingsError(f"{name} from {resolved.origins[name]} cannot be had under Ray Serve. {advice}.")
    unused = [name for name in _WITHOUT_EFFECT if name in resolved.origins]
    return [f"under Ray Serve these settings have no effect: {', '.join(unused)}"] if unused else []


def _check_access(settings: Settings) -> list[str]:
    """Serve may listen on every address, whatever `server.host` says: HAProxy does always."""
    public = msgspec.structs.replace(settings, server=msgspec.structs.replace(settings.server, host="0.0.0.0"))
    try:
        return refuse_exposure(public)
    except AccessError as error:
        raise SettingsError(str(error)) from None
