"""`tidegate engines`: what an operator sees of the engines of a running server, and does to them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tidegate.cli.admin_client import AdminClient, AdminFault
from tidegate.cli.main import resolve_settings
from tidegate.contract.admin import EngineAct

Command = Callable[..., Any]
_ADMIN = "/admin/v1"
_OUT = ("draining", "retiring", "gone")
_COLUMNS = ("name", "model", "state", "requests", "outstanding_tokens", "restarts", "condition")


def _server_options(command: Command) -> Command:
    """Where the server is: for every command of the group."""
    command = click.option("--json", "as_json", is_flag=True, help="print the server's answer as it is")(command)
    command = click.option(
        "--admin-token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="file with the credential of the admin listener; else auth.admin_token_file",
    )(command)
    command = click.option(
        "--admin-url", metavar="URL", help="admin listener; else server.admin_host and server.admin_port"
    )(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="settings file of the server, if it has one",
    )(command)


def _wait_option(what: str) -> Callable[[Command], Command]:
    return click.option("--wait", "wait_s", type=click.FloatRange(0, 600), metavar="SECONDS", help=what)


@click.group()
def engines() -> None:
    """Show the engines of a running server, and add, drain, retire, restart or roll them.

    \b
    Examples
      tidegate engines list
      tidegate engines add --wait 120                one more engine of the only model
      tidegate engines drain engine-1                no more requests; what it has goes on
      tidegate engines return engine-1               the end of that
      tidegate engines retire engine-2 --wait 60     as drain, and then the engine ends
      tidegate engines roll --wait 600               all of them anew, one after the other, without a cut stream

    The commands speak to the admin listener, http://127.0.0.1:9464 if nothing else is said. They end with 0 when
    the act is done or under way, with 1 when it was refused or has failed. docs/pool.md says what each act does.
    """


@engines.command("list")
@_server_options
def list_engines(as_json: bool, **where: Any) -> None:
    """List the engines, what they are doing, and what is the matter with them."""
    answer = _call(where, "GET", "/engine", None)
    if as_json:
        _print_json(answer)
        return
    rows = [["" if row[name] is None else str(row[name]) for name in _COLUMNS] for row in answer["engines"]]
    table = [[name.replace("_", " ").upper() for name in _COLUMNS], *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@engines.command(short_help="Start one more engine.")
@click.option("--model", metavar="NAME", help="whose engine is added; needed where the server has several models")
@click.option("--url", metavar="URL", help="where it is, for kinds of engine that run elsewhere, and only for them")
@_wait_option("how long to wait for it to be ready; not at all if absent")
@_server_options
def add(model: str | None, url: str | None, wait_s: float | None, as_json: bool, **where: Any) -> None:
    """Start one more engine of a model; it gets requests once it is ready.

    It is as the model's first engine, or as those of the table whose number follows the load. The server names it. One
    that does not start, or serves another revision, is taken out again.
    """
    answer = _call(where, "POST", "/engines", {"model": model, "url": url, "wait_s": wait_s})
    _tell(answer, f"{answer['engine']}: {answer['state']}", as_json=as_json)


def _act_command(act: EngineAct, short: str, text: str) -> None:
    def run(name: str, as_json: bool, **where: Any) -> None:
        waits = {"wait_s": where.pop("wait_s")} if "wait_s" in where else {}
        answer = _call(where, "POST", f"/engines/{quote(name, safe='')}/{act.value}", waits)
        _tell(answer, _words(name, answer), as_json=as_json)

    command = _server_options(run)
    if act in (EngineAct.RESTART, EngineAct.RETIRE):
        command = _wait_option("how long to wait for the end of it; not at all if absent")(command)
    engines.command(act.value, help=text, short_help=short)(click.argument("name")(command))


def _words(name: str, answer: dict[str, Any]) -> str:
    match answer:
        case {"freed_blocks": freed}:
            return f"{name}: {freed} blocks freed"
        case {"status": status, "epoch": epoch}:
            return f"{name}: {status}, epoch {epoch}"
        case {"state": state, "requests": requests, "taken": None}:
            return f"{name}: {state}, {requests} requests{' left' if state in _OUT else ''}"
        case {"state": state, "taken": taken}:
            return f"{name}: {state}, {taken} requests taken from it"
        case _:
            return json.dumps(answer)


_LAST = " The last engine of a model that serves is not taken out."
for _act, (_short, _text) in {
    EngineAct.DRAIN: (
        "Give it no more requests.",
        f"Give engine NAME no more requests, until `return`; what it has goes on.{_LAST}",
    ),
    EngineAct.EJECT: (
        "As drain, and take from it what it has.",
        "Give engine NAME no more requests, until `return`, and take from it what it has: a request of which nothing "
        f"was sent moves to another engine, any other fails.{_LAST}",
    ),
    EngineAct.RETIRE: (
        "As drain, and then it ends.",
        "Give engine NAME no more requests; what it has goes on, and then the engine ends. `return` takes that back as "
        f"long as it has not ended.{_LAST}",
    ),
    EngineAct.RETURN: (
        "Give it requests again.",
        "End the drain, ejection or retirement of engine NAME. It is `probing` until it has answered one request.",
    ),
    EngineAct.RESTART: (
        "Start it anew, at once.",
        "End engine NAME and start it anew, at once: what it has is cut. `roll` cuts nothing.",
    ),
    EngineAct.FLUSH: ("Drop its prefix cache.", "Drop what engine NAME has cached of prompts."),
}.items():
    _act_command(_act, _short, _text)


@engines.command(short_help="Restart all, one after the other.")
@click.option("--model", metavar="NAME", help="whose engines; those of all models if absent")
@click.option(
    "--ready",
    "ready_s",
    type=click.FloatRange(0.001, 3600),
    metavar="SECONDS",
    help="how long a new one may take; 600 if absent",
)
@click.option("--stop", is_flag=True, help="end the roll that is under way, and nothing else")
@click.option("--show", is_flag=True, help="say how far the last roll is, and nothing else")
@_wait_option("how long to wait for the end; not at all if absent")
@_server_options
def roll(
    model: str | None,
    ready_s: float | None,
    stop: bool,
    show: bool,
    wait_s: float | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Restart the engines one after the other, each when it has nothing left: no stream is cut.

    The roll ends early, and this command with 1, when a new engine is not ready in time or serves another revision, or
    when no other engine is left to take requests. Where a model has one engine, and may have more, another stands in.
    """
    if (stop or show) and (stop == show or model or ready_s is not None or wait_s is not None):
        raise click.UsageError("--stop and --show stand alone.")
    if show:
        answer = _call(where, "GET", "/engines/roll", None)
    elif stop:
        answer = _call(where, "POST", "/engines/roll/stop", {})
    else:
        answer = _call(where, "POST", "/engines/roll", {"model": model, "ready_s": ready_s, "wait_s": wait_s})
    if answer["state"] == "none":
        _tell(answer, "there has been no roll since the server's start", as_json=as_json)
        return
    now = f", {answer['engine']} now" if answer["engine"] else ""
    why = f": {answer['reason']}" if answer["reason"] else ""
    _tell(
        answer, f"{answer['state']}{now}, {len(answer['done'])} done, {len(answer['left'])} left{why}", as_json=as_json
    )
    sys.exit(1 if answer["state"] == "aborted" and not stop and not show else 0)


def _call(where: dict[str, Any], method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
    settings = resolve_settings(where["config_file"], None, {}).settings
    try:
        client = AdminClient.of(settings, where["admin_url"], where["admin_token_file"])
        given = None if body is None else {name: value for name, value in body.items() if value is not None}
        return client.call(method, f"{_ADMIN}{path}", given)
    except AdminFault as fault:
        click.echo(f"tidegate: {fault}", err=True)
        sys.exit(1)


def _tell(answer: dict[str, Any], words: str, *, as_json: bool) -> None:
    if as_json:
        _print_json(answer)
    else:
        click.echo(words)


def _print_json(answer: dict[str, Any]) -> None:
    click.echo(json.dumps(answer, indent=2))
