"""`tidegate doctor`: looks at this machine with the eyes of `tidegate serve`, and says what to do.

Every check is a pure function (`check_software.py`, `check_model.py`, `check_machine.py`, `check_access.py`) over facts
that `doctor_facts.py` and `access.py` gather. What needs the libraries themselves (`doctor_engine.py`) comes only after
they were found.
"""

import sys
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli import doctor_facts as facts
from tidegate.cli.access import gather_access_facts
from tidegate.cli.check_access import check_access
from tidegate.cli.check_machine import (
    check_descriptors,
    check_folder,
    check_listener,
    check_processors,
)
from tidegate.cli.check_model import ModelFileFacts, check_memory, check_model_file, check_weight_type
from tidegate.cli.check_software import LlamaProbe, check_libraries, check_llama, check_python, least_versions
from tidegate.cli.engine_specs import ModelSpec, SpecError, model_specs
from tidegate.cli.finding import Finding, Level, ok, problem, warning
from tidegate.cli.hugging_face import HuggingFace
from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.model_source import Hub, find_model
from tidegate.cli.model_source_error import ModelSourceError
from tidegate.cli.remote_settings import is_vllm
from tidegate.cli.settings import Settings
from tidegate.machine import available_bytes, usable_processors

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}
_PIPED_WIDTH = 160


def run_doctor(settings: Settings, *, starts_engine: bool = False) -> int:
    """Prints one row for each check; returns 1 when there is a problem, else 0."""
    hub = facts.OfflineHub(HuggingFace())
    findings = look(settings, hub, starts_engine=starts_engine)
    _print(findings, may_start=not starts_engine)
    return 1 if _has_problem(findings) else 0


def look(settings: Settings, hub: Hub, *, starts_engine: bool) -> list[Finding]:
    """Carries out every check that these settings call for. Fetches nothing."""
    try:
        specs = model_specs(settings)
    except SpecError as error:
        return [problem("engines", str(error), "change the [[engines]] tables")]
    inside = [inner_settings(spec.settings) for spec in specs]
    first = next((one for one in inside if one.engine.kind == "llama"), inside[0])
    probe = facts.probe_llama() if first.engine.kind == "llama" and _has_llama() else None
    software = _software(first, probe)
    models: list[Finding] = []
    for spec in specs:
        found = (
            _model(spec.settings, hub, has_gpu=probe is not None and probe.has_gpu, starts_engine=starts_engine)
            if not _has_problem(software)
            else _unread_model(spec.settings, hub)
        )
        prefix = "" if len(specs) == 1 else f"{spec.names[0]}: "
        models += [replace(one, subject=prefix + one.subject) for one in found]
    return [*software, *_engines(specs), *_machine(settings, specs), *models]


def _unread_model(settings: Settings, hub: Hub) -> list[Finding]:
    """Looks at a model's file where libraries are missing."""
    _, model = _model_file(settings, hub, has_gpu=False)
    advice = "cure the problems above first"
    return [*model, warning("chat template", "not looked at: libraries are missing", advice)]


def _model(settings: Settings, hub: Hub, *, has_gpu: bool, starts_engine: bool) -> list[Finding]:
    """Looks at one model: its file, its tokenizer and template, its engine."""
    file, model = _model_file(settings, hub, has_gpu=has_gpu)
    if _has_problem(model) or (file is None and inner_settings(settings).engine.kind == "llama"):
        return model
    from tidegate.cli.doctor_engine import look_at_loading

    header = file.header if file is not None else None
    return [*model, *look_at_loading(settings, hub, header, starts_engine=starts_engine)]


def _engines(specs: tuple[ModelSpec, ...]) -> list[Finding]:
    """Says who serves what, where there are several engines."""
    if sum(len(spec.engines) for spec in specs) == 1:
        return []
    return [ok("engines", f"{', '.join(one.name for one in spec.engines)} for {spec.names[0]}") for spec in specs]


def _has_problem(findings: list[Finding]) -> bool:
    return any(finding.level is Level.PROBLEM for finding in findings)


def _has_llama() -> bool:
    return facts.installed_version("llama-cpp-python") is not None


def _software(settings: Settings, probe: LlamaProbe | None) -> list[Finding]:
    major, minor, micro = sys.version_info[:3]
    least = least_versions(facts.requirements())
    installed = {name: facts.installed_version(name) for name in least}
    findings = [check_python((major, minor, micro), sys.platform), *check_libraries(least, installed, settings)]
    if probe is not None:
        findings += check_llama(probe, facts.cpu_features(), settings)
    return findings


def _model_file(settings: Settings, hub: Hub, *, has_gpu: bool) -> tuple[ModelFileFacts | None, list[Finding]]:
    """Looks at the model file without any library; None where there is no file to look at."""
    settings = inner_settings(settings)
    if is_vllm(settings):
        return None, [
            ok("model file", f"not looked at: vLLM reads {settings.model.source or 'MODEL, which is not given'}")
        ]
    if settings.engine.kind != "llama":
        where = f"at {settings.engine.url}" if settings.engine.url else "needs no model"
        return None, [ok("model file", f"none here: the {settings.engine.kind} engine {where}")]
    try:
        source = find_model(settings.model.source, hub)
    except facts.NotHere as error:
        return None, [warning("model file", str(error), "make sure that huggingface.co can be reached")]
    except ModelSourceError as error:
        return None, [problem("model file", str(error), "`tidegate models` lists what is on this machine")]
    file = facts.model_file_facts(source)
    findings = [check_model_file(file)]
    if file.header is not None:
        findings += _present(
            check_weight_type(file.header, settings, has_gpu=has_gpu),
            check_memory(file, settings, _share(available_bytes(), settings), has_gpu=has_gpu),
        )
    return file, findings


def _share(num_bytes: int | None, settings: Settings) -> int | None:
    return None if num_bytes is None else num_bytes // settings.engine.most_replicas


def _present(*findings: Finding | None) -> list[Finding]:
    return [finding for finding in findings if finding is not None]


def _machine(settings: Settings, specs: tuple[ModelSpec, ...]) -> list[Finding]:
    server = settings.server
    public, admin = facts.listener_refusals(settings)
    return [
        check_listener("public", server.host, server.port, public),
        check_listener("admin", server.admin_host, server.admin_port, admin),
        *check_access(gather_access_facts(settings), settings),
        check_processors(usable_processors(), specs[0].settings),
        check_descriptors(facts.descriptor_limit(), specs[0].settings),
        check_folder(facts.runtime_folder()),
    ]


def _print(findings: list[Finding], *, may_start: bool) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        words = Text(finding.found)
        if finding.advice is not None:
            words.append(f"\n-> {finding.advice}", style="dim" if finding.level is Level.OK else "bold")
        table.add_row(Text(finding.level.value, style=_COLOURS[finding.level]), finding.subject, words)
    console.print(table)
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    summary = ", ".join(_count(counts[level], level.value) for level in (Level.PROBLEM, Level.WARNING))
    console.print(Text(summary, style="bold red" if counts[Level.PROBLEM] else "bold"))
    if may_start and not counts[Level.PROBLEM]:
        console.print("`tidegate doctor --start` also starts the engine for a moment.")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
