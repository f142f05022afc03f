"""`tidegate keys`: makes, lists, shows and revokes the keys of callers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from tidegate.cli.key_view import key_as_json, print_key, print_table
from tidegate.cli.main import resolve_settings
from tidegate.cli.point_in_time import parse_instant
from tidegate.cli.state_folder import StateFolderError, locate_keys_file, make_private_folder
from tidegate.contract.codec import encode_json
from tidegate.http.public_routes import routes_behind_keys
from tidegate.lifecycle.key_policy import KeyPolicyError, KeyRecord, KeyState, check_policy
from tidegate.lifecycle.key_text import KEY_ENTROPY_BYTES, digest_of, make_key
from tidegate.lifecycle.principal import HIGHEST_PRIORITY, LOWEST_PRIORITY, Principal, Quotas
from tidegate.observability.redact import clean_text
from tidegate.stores.key_file import KeyFileError
from tidegate.stores.sqlite_keys import NameTaken, SqliteKeys
from tidegate.system import SystemClock, entropy

Command = Callable[..., Any]

_FLAGS = {
    "name": "NAME",
    "models": "--model",
    "routes": "--route",
    "expires_at": "--expires",
    "priority_min": "--priority-min",
    "priority_max": "--priority-max",
    "concurrency": "--concurrency",
    "requests_per_minute": "--requests-per-minute",
    "tokens_per_minute": "--tokens-per-minute",
    "deadline_max_ms": "--deadline-max-ms",
}


def _store_options(command: Command) -> Command:
    """Where the keys are, and how answers look: for every command of the group."""
    command = click.option("--json", "as_json", is_flag=True, help="print JSON, for scripts")(command)
    command = click.option(
        "--keys-file",
        type=click.Path(dir_okay=False),
        help="file of keys; else auth.keys_file, else in the state folder",
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="settings file of the server, if it has one",
    )(command)


@click.group()
def keys() -> None:
    """Make, list and revoke the keys of callers.

    Without any key a server on loopback serves whoever reaches it, and one on another address refuses to start. From
    the first key on every route needs one, except /healthz and /health. Running servers notice every change
    within about a second; a request that is running ends as it began.

    \b
    Examples
      tidegate keys create mobile-app
      tidegate keys create nightly --model my-model --priority-min 50 --concurrency 4 --expires 90d
      KEY=$(tidegate keys create script-1)        only the key goes to standard output
      tidegate keys revoke mobile-app

    Keys are kept as digests, in a file that the server and this command must both find: give both the same --config
    or environment. docs/keys.md says more.
    """


@keys.command()
@click.argument("name")
@click.option("--model", "models", multiple=True, help="a model that it may use; several times for several [all]")
@click.option(
    "--route", "routes", multiple=True, metavar="PATTERN", help="a route that it may use, as /v1/models/{id} [all]"
)
@click.option(
    "--priority-min",
    type=int,
    default=HIGHEST_PRIORITY,
    help=f"least X-Priority, {HIGHEST_PRIORITY} to {LOWEST_PRIORITY}; lower runs first [{HIGHEST_PRIORITY}]",
)
@click.option("--priority-max", type=int, default=LOWEST_PRIORITY, help=f"greatest X-Priority [{LOWEST_PRIORITY}]")
@click.option("--concurrency", type=int, help="requests at once [no limit]")
@click.option("--requests-per-minute", type=int, help="requests in a minute [no limit]")
@click.option("--tokens-per-minute", type=int, help="tokens in a minute, prompt and output [no limit]")
@click.option("--deadline-max-ms", type=int, help="longest time of one request [the server's]")
@click.option("--expires", metavar="WHEN", help="30m, 12h, 90d, 4w from now; or 2030-12-31, 2030-12-31T18:00Z [never]")
@_store_options
def create(name: str, expires: str | None, config_file: Path | None, keys_file: str | None, **fields: Any) -> None:
    """Make a key with the given NAME, and show it: this once, and never again.

    The name stands in logs and metrics in place of the key. A name belongs to one key at a time; a revoked key's name
    is free again. Numbers and names out of range are refused, with the range.
    """
    as_json = fields.pop("as_json")
    wall = SystemClock().wall()
    key_id, key = make_key(entropy(KEY_ENTROPY_BYTES))
    record = KeyRecord(_to_principal(key_id, name, fields), digest_of(key), wall, _read_expiry(expires, wall))
    _check(record, wall)
    store = _open_store(config_file, keys_file)
    try:
        make_private_folder(store.path.parent)
        is_first = store.create(record)
    except NameTaken as taken:
        raise click.BadParameter(
            f"{name} is the name of {taken.key_id}; revoke that one first, or choose another name.",
            param_hint=_FLAGS["name"],
        ) from None
    except (KeyFileError, StateFolderError) as error:
        _fail(error)
    if as_json:
        click.echo(encode_json({**key_as_json(record, wall), "key": key}))
        return
    click.echo(f"{key_id} ({name}) is in {store.path}. The key is shown only now:", err=True)
    click.echo(key)
    click.echo("Callers send it as  Authorization: Bearer KEY", err=True)
    if is_first:
        click.echo("It is the first one: from now on every route needs a key, on running servers too.", err=True)


@keys.command(name="list")
@click.option("--all", "show_all", is_flag=True, help="also revoked ones")
@_store_options
def list_(show_all: bool, as_json: bool, config_file: Path | None, keys_file: str | None) -> None:
    """List the keys, oldest first."""
    store, wall = _open_store(config_file, keys_file), SystemClock().wall()
    records = _read(store)
    shown = [record for record in records if show_all or record.state(wall) is not KeyState.REVOKED]
    if as_json:
        click.echo(encode_json([key_as_json(record, wall) for record in shown]))
    elif shown:
        print_table(shown, wall)
    else:
        left_out = f" ({len(records)} revoked; --all shows them)" if records else ""
        click.echo(f"There is no key in {store.path}{left_out}. `tidegate keys create NAME` makes one.")


@keys.command()
@click.argument("key", metavar="ID|NAME")
@_store_options
def show(key: str, as_json: bool, config_file: Path | None, keys_file: str | None) -> None:
    """Show all that is known of one key, but not the key."""
    record, wall = _find(_open_store(config_file, keys_file), key), SystemClock().wall()
    if as_json:
        click.echo(encode_json(key_as_json(record, wall)))
    else:
        print_key(record, wall)


@keys.command()
@click.argument("key", metavar="ID|NAME")
@_store_options
def revoke(key: str, as_json: bool, config_file: Path | None, keys_file: str | None) -> None:
    """End a key at once and for good.

    Running servers refuse it within about a second. The server stays closed when the last key is revoked.
    """
    store, wall = _open_store(config_file, keys_file), SystemClock().wall()
    record = _find(store, key)
    try:
        is_changed = store.revoke(record.principal.key_id, wall)
    except KeyFileError as error:
        _fail(error)
    if not is_changed:
        raise click.UsageError(f"{record.principal.key_id} ({record.principal.name}) was revoked before.")
    if as_json:
        click.echo(encode_json(key_as_json(_find(store, record.principal.key_id), wall)))
    else:
        click.echo(f"{record.principal.key_id} ({record.principal.name}) is revoked.")


def _to_principal(key_id: str, name: str, fields: dict[str, Any]) -> Principal:
    return Principal(
        key_id=key_id,
        name=name,
        models=frozenset(fields["models"]) or None,
        routes=frozenset(fields["routes"]) or None,
        priority_min=fields["priority_min"],
        priority_max=fields["priority_max"],
        quotas=Quotas(fields["concurrency"], fields["requests_per_minute"], fields["tokens_per_minute"]),
        deadline_max_ms=fields["deadline_max_ms"],
    )


def _read_expiry(expires: str | None, wall: float) -> float | None:
    try:
        return None if expires is None else parse_instant(expires, wall)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=_FLAGS["expires_at"]) from None


def _check(record: KeyRecord, wall: float) -> None:
    name = record.principal.name
    if clean_text(name) != name:
        raise click.BadParameter("this looks like a key or a token, and logs would hide it.", param_hint=_FLAGS["name"])
    try:
        check_policy(record.principal, expires_at=record.expires_at, wall=wall, known_routes=routes_behind_keys())
    except KeyPolicyError as error:
        raise click.BadParameter(str(error), param_hint=_FLAGS[error.field]) from None


def _open_store(config_file: Path | None, keys_file: str | None) -> SqliteKeys:
    settings = resolve_settings(config_file, None, {"auth__keys_file": keys_file}).settings
    try:
        return SqliteKeys(locate_keys_file(settings))
    except StateFolderError as error:
        _fail(error)


def _read(store: SqliteKeys) -> list[KeyRecord]:
    try:
        return store.list_keys()
    except KeyFileError as error:
        _fail(error)


def _find(store: SqliteKeys, key: str) -> KeyRecord:
    """Returns the key of this id, else the one of this name: the one that is not revoked, else the youngest."""
    records = _read(store)
    for record in records:
        if record.principal.key_id == key:
            return record
    named = [record for record in records if record.principal.name == key]
    if named:
        return max(named, key=lambda record: (record.revoked_at is None, record.created_at))
    raise click.UsageError(f"There is no key of this id or name in {store.path}; `tidegate keys list --all` lists all.")


def _fail(error: Exception) -> NoReturn:
    click.echo(f"tidegate: {error}", err=True)
    sys.exit(1)
