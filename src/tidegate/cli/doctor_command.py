"""`tidegate doctor`: looks at this machine with the eyes of `tidegate serve`, and says what to do.

Every check is a pure function (`check_software.py`, `check_model.py`, `check_machine.py`) over facts that
`doctor_facts.py` gathers.
"""

import asyncio
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli import doctor_facts as facts
from tidegate.cli.check_machine import (
    check_descriptors,
    check_engine_options,
    check_exposure,
    check_folder,
    check_listener,
    check_processors,
)
from tidegate.cli.check_model import check_memory, check_model_file, check_template, check_weight_type
from tidegate.cli.check_software import check_libraries, check_llama, check_python, least_versions
from tidegate.cli.finding import Finding, Level, ok, problem, warning
from tidegate.cli.model_loading import LoadedModel, LoadError, load_model
from tidegate.cli.model_source import ModelSourceError, find_model
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import engine_options
from tidegate.engine.options import OptionsError, decode_options, encode_options
from tidegate.engines.local.restart_policy import RestartSettings
from tidegate.engines.local.supervisor import EngineStartFailed, Supervisor, SupervisorSettings

_START_TIMEOUT_S = 120.0
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


def run_doctor(settings: Settings, *, starts_engine: bool = False) -> int:
    """Prints one row for each check; returns 1 when there is a problem, else 0."""
    findings = [*_software(settings)]
    loaded: LoadedModel | None = None
    if any(finding.level is Level.PROBLEM and finding.subject == "llama.cpp" for finding in findings):
        findings.append(warning("model file", "not looked at: llama.cpp does not load", "cure that first"))
    else:
        more, loaded = _model(settings)
        findings += more
    findings += _machine(settings)
    if loaded is not None:
        options = engine_options(settings, loaded)
        refusal = None
        try:
            decode_options(encode_options(options), options.backend)
        except OptionsError as error:
            refusal = str(error)
        findings.append(check_engine_options(settings, refusal))
        if starts_engine and refusal is None:
            findings.append(asyncio.run(_start(settings, loaded)))
    _print(findings, may_start=loaded is not None and not starts_engine)
    return 1 if any(finding.level is Level.PROBLEM for finding in findings) else 0


def _software(settings: Settings) -> list[Finding]:
    major, minor, micro = sys.version_info[:3]
    least = least_versions(facts.requirements())
    installed = {name: facts.installed_version(name) for name in least}
    findings = [check_python((major, minor, micro), sys.platform), *check_libraries(least, installed, settings)]
    if settings.engine.kind == "llama" and installed.get("llama-cpp-python") is not None:
        findings += check_llama(facts.probe_llama(), facts.cpu_features(), settings)
    return findings


def _model(settings: Settings) -> tuple[list[Finding], LoadedModel | None]:
    """Looks at the model file, then loads tokenizer and template from it as `serve` does."""
    if settings.engine.kind != "llama":
        return [ok("model file", f"none: the {settings.engine.kind} engine needs no model")], load_model(settings)
    from tidegate.cli.hugging_face import HuggingFace

    hub = facts.OfflineHub(HuggingFace())
    try:
        source = find_model(settings.model.source, hub)
    except facts.NotHere as error:
        return [warning("model file", str(error), "make sure that huggingface.co can be reached")], None
    except ModelSourceError as error:
        return [problem("model file", str(error), "`tidegate models` lists what is on this machine")], None
    file = facts.model_file_facts(source)
    findings = [check_model_file(file)]
    if file.header is None or findings[0].level is Level.PROBLEM:
        return findings, None
    loaded, fault = None, None
    try:
        loaded = load_model(settings, hub)
    except LoadError as error:
        fault = str(error)
    more = (
        check_template(file.header.text("tokenizer.chat_template"), settings, fault),
        check_weight_type(file.header, settings),
        check_memory(file.header, file.num_bytes, settings, facts.available_bytes()),
    )
    return [*findings, *(finding for finding in more if finding is not None)], loaded


def _machine(settings: Settings) -> list[Finding]:
    server = settings.server
    public, admin = facts.listener_refusals(settings)
    return [
        check_listener("public", server.host, server.port, public),
        check_listener("admin", server.admin_host, server.admin_port, admin),
        *check_exposure(
            settings,
            is_public=not facts.is_loopback(server.host),
            is_admin_public=not facts.is_loopback(server.admin_host),
        ),
        check_processors(facts.usable_processors(), settings),
        check_descriptors(facts.descriptor_limit(), settings),
        check_folder(facts.runtime_folder()),
    ]


async def _start(settings: Settings, loaded: LoadedModel) -> Finding:
    """Starts the engine process with these settings, waits until it is ready, and ends it."""
    once = SupervisorSettings(RestartSettings(max_failed_starts=1), start_timeout_s=_START_TIMEOUT_S)
    supervisor = Supervisor(engine_options(settings, loaded), once, write_log=_drop)
    clock = asyncio.get_running_loop().time
    started_at = clock()
    try:
        await supervisor.start()
        await supervisor.wait_ready()
        model = supervisor.engine.statistics().model
    except EngineStartFailed as error:
        words = " / ".join(error.last_lines[-3:]) or "it wrote nothing"
        return problem("engine", f"does not start (exit code {error.exit_code}): {words}", "see the rows above")
    except (OSError, ValueError) as error:
        return problem("engine", f"cannot be started: {error}", "see the row on the runtime folder")
    finally:
        await supervisor.aclose()
    if model is None:
        return problem("engine", "started without saying what it serves", "report this as a fault of tidegate")
    return ok(
        "engine",
        f"{model.build} was ready after {clock() - started_at:.1f} s: sequences of up to {model.max_model_len:,} tokens, "
        f"{model.max_sequences} at once, a cache of {model.num_blocks * model.block_tokens:,} tokens",
    )


def _drop(_line: bytes) -> None:
    return None


def _print(findings: list[Finding], *, may_start: bool) -> None:
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        words = Text(finding.found)
        if finding.advice is not None:
            words.append(f"\n-> {finding.advice}", style="bold" if finding.level is not Level.OK else "dim")
        table.add_row(Text(finding.level.value, style=_COLOURS[finding.level]), finding.subject, words)
    console.print(table)
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    summary = f"{counts[Level.PROBLEM]} problems, {counts[Level.WARNING]} warnings"
    console.print(Text(summary, style="bold red" if counts[Level.PROBLEM] else "bold"))
    if may_start and not counts[Level.PROBLEM]:
        console.print("`tidegate doctor --start` also starts the engine for a moment.")
