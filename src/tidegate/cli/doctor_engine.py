"""The part of `tidegate doctor` that needs every library in place: loads the model as `serve` does, starts the engine.

Imported only when the libraries have passed their own check.
"""

import asyncio

import msgspec

from tidegate.cli.check_machine import check_engine_options
from tidegate.cli.check_model import check_grammar, check_template
from tidegate.cli.finding import Finding, ok, problem
from tidegate.cli.inner_engine import is_on_ray
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import FormatError, LoadedModel, engine_fault, load_model
from tidegate.cli.model_source import Hub
from tidegate.cli.prefix_cache_text import prefix_cache_text
from tidegate.cli.ready_text import describe_formats
from tidegate.cli.remote_settings import is_remote, is_vllm, reads_folder
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import engine_options
from tidegate.engine.options import OptionsError, decode_options, encode_options
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.local.supervisor import Supervisor, SupervisorSettings
from tidegate.sizing.gguf_header import GgufHeader

_START_TIMEOUT_S = 120.0


def look_at_loading(settings: Settings, hub: Hub, header: GgufHeader | None, *, starts_engine: bool) -> list[Finding]:
    """Checks tokenizer, template and engine options. `header` is None for engines without a model file."""
    loaded, fault = None, None
    try:
        # A grammar backend that cannot be used has a row of its own.
        grammar = msgspec.structs.replace(settings.grammar, required=False)
        loaded = load_model(msgspec.structs.replace(settings, grammar=grammar), hub)
    except FormatError as error:
        return [problem("formats", str(error), "leave model.tool_format and model.reasoning_format auto")]
    except LoadError as error:
        fault = str(error)
    if fault is not None and reads_folder(settings):
        page = "docs/remote_engines.md" if is_remote(settings) else "docs/vllm.md"
        return [problem("tokenizer", fault, f"{page} says what is needed")]
    findings: list[Finding] = []
    if header is not None or fault is not None:
        template = header.text("tokenizer.chat_template") if header is not None else None
        findings.append(check_template(template, settings, fault))
    if loaded is None:
        return findings
    formats = loaded.served.formats
    findings += [ok(subject, words) for subject, words in describe_formats(formats).items()]
    findings.append(check_grammar(settings, loaded.grammar))
    foreign = _look_at_foreign(settings, loaded, starts_engine=starts_engine)
    if foreign is not None:
        return [*findings, foreign]
    options = engine_options(settings, loaded)
    refusal = None
    try:
        decode_options(encode_options(options), options.backend)
    except OptionsError as error:
        refusal = str(error)
    findings.append(check_engine_options(settings, refusal))
    if starts_engine and refusal is None:
        findings.append(asyncio.run(_start(settings, loaded)))
    return findings


def _look_at_foreign(settings: Settings, loaded: LoadedModel, *, starts_engine: bool) -> Finding | None:
    """Looks at an engine that is no process of ours alone; None where it is."""
    if is_remote(settings):
        from tidegate.cli.doctor_remote import look_at_remote_engine

        return look_at_remote_engine(settings, loaded, is_thorough=starts_engine)
    if is_vllm(settings):
        from tidegate.cli.doctor_vllm import look_at_vllm

        return look_at_vllm(settings, loaded, starts_engine=starts_engine)
    if is_on_ray(settings):
        from tidegate.cli.doctor_ray import look_at_ray

        return look_at_ray(settings, loaded, starts_engine=starts_engine)
    return None


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
        if error.exit_code is None:
            return problem("engine", str(error), "see the rows above")
        words = " / ".join(error.last_lines[-3:]) or "it wrote nothing"
        return problem("engine", f"does not start (exit code {error.exit_code}): {words}", "see the rows above")
    except (OSError, ValueError) as error:
        return problem("engine", f"cannot be started: {error}", "see the row on the runtime folder")
    finally:
        await supervisor.aclose()
    if model is None:
        return problem("engine", "started without saying what it serves", "report this as a fault of tidegate")
    fault = engine_fault(loaded, model)
    if fault is not None:
        return problem("engine", fault, "change it in tidegate.toml; `tidegate config` shows where each value is from")
    return ok(
        "engine",
        f"{model.build} was ready after {clock() - started_at:.1f} s: sequences of up to {model.max_model_len:,} "
        f"tokens, {model.max_sequences} at once, a cache of {model.num_blocks * model.block_tokens:,} tokens"
        + (f"; {said}" if (said := prefix_cache_text(settings, model)) else ""),
    )


def _drop(_line: bytes) -> None:
    return None
