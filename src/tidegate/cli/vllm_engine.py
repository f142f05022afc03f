"""From settings to vLLM in this process: its model's folder, what it is started with, who watches over it."""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

from tidegate.cli.hugging_face import HuggingFace
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_source import Hub
from tidegate.cli.model_source_error import ModelSourceError
from tidegate.cli.remote_engine import read_tokenizer, served_facts
from tidegate.cli.settings import Settings
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.vllm.engine_arguments import UnusableOptions, VllmPlan, check_options
from tidegate.engines.vllm.installed_vllm import InstalledVllm, VllmMissing, require_vllm
from tidegate.engines.vllm.library import Library
from tidegate.engines.vllm.llm_carrier import LlmCarrier
from tidegate.engines.vllm.watch import VllmSettings, VllmWatch
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.serving.served_model import ServedModel
from tidegate.text.vocabulary import ModelFacts, Tokenizer

FOLDER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"),
    *("special_tokens_map.json", "chat_template.jinja", "chat_template.json"),
)
"""What is fetched of a model on Hugging Face before vLLM fetches its weights."""


def load_folder(
    settings: Settings, hub: Hub | None = None, *, is_here: bool = True
) -> tuple[Tokenizer, ModelFacts, str]:
    """Returns the tokenizer, what the files beside it say, and a name for the model. Raises LoadError.

    `is_here`: vLLM will run in this process.
    """
    if settings.server.workers > 1 and is_here:
        raise LoadError(
            "The vllm engine lives in the server's process, so server.workers must be 1. For more processes start "
            "`vllm serve` and put them in front of it with --engine vllm-http."
        )
    try:
        if is_here:
            require_vllm()
        check_options(settings.engine.options)
    except (VllmMissing, UnusableOptions) as error:
        raise LoadError(str(error)) from None
    source = settings.model.source
    if not source:
        raise LoadError("The vllm engine needs MODEL: a folder in Hugging Face's format, or an id such as org/name.")
    folder = tokenizer_folder(settings, hub)
    tokenizer = read_tokenizer(folder)
    name = source.rstrip("/") if not Path(source).is_dir() else Path(source).resolve().name
    return tokenizer, tokenizer.facts, name


def tokenizer_folder(settings: Settings, hub: Hub | None = None) -> Path:
    """Returns the folder of tokenizer and template, fetched where MODEL is on Hugging Face. Raises LoadError."""
    source = settings.model.source or ""
    if settings.model.tokenizer is not None:
        return Path(settings.model.tokenizer)
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise LoadError(
            f"{source} is a file: the vllm engine needs a folder in Hugging Face's format, or an id such as org/name."
        )
    if source.startswith((".", "/", "~")) or source.count("/") != 1:
        raise LoadError(
            f"There is no folder {source}: the vllm engine needs one, or a Hugging Face id such as org/name."
        )
    found = hub or HuggingFace()
    try:
        here = found.cached().get(source, {})
        names = here if "tokenizer.json" in here else found.list_files(source)
        paths = [here.get(name) or found.download(source, name) for name in FOLDER_FILES if name in names]
    except ModelSourceError as error:
        raise LoadError(str(error)) from None
    if not paths or "tokenizer.json" not in names:
        raise LoadError(f"{source} has no tokenizer.json: give a folder that has one with --tokenizer.")
    return paths[0].parent


def vllm_plan(settings: Settings, tokenizer: Path) -> VllmPlan:
    """Returns what vLLM is started with."""
    engine = settings.engine
    return VllmPlan(
        model=settings.model.source or "",
        tokenizer=str(tokenizer),
        max_sequences=engine.max_sequences,
        max_model_len=settings.model.max_model_len,
        keeps_prefixes=engine.prefix_cache,
        has_priorities=settings.admission.policy == "priority",
        drain_s=math.ceil(settings.server.drain_timeout_s),
        options=engine.options,
    )


def make_vllm_watch(
    settings: Settings,
    served: ServedModel,
    *,
    has_compiler: bool,
    take_note: Callable[[str], None],
    poison: PoisonWatch | None = None,
    library: Library | None = None,
) -> VllmWatch:
    """Returns the engine under its watch, not started. Call on the event loop. Raises LoadError."""
    loop = asyncio.get_running_loop()
    carrier = LlmCarrier(library := library or InstalledVllm())
    engine = RemoteEngine(carrier, loop.call_exception_handler, call_soon=loop.call_soon, now=loop.time, poison=poison)
    plan = vllm_plan(settings, tokenizer_folder(settings))
    facts = served_facts(settings, served, has_compiler=has_compiler)
    return VllmWatch(engine, carrier, library, plan, facts, _watch_settings(settings), take_note)


def _watch_settings(settings: Settings) -> VllmSettings:
    engine, defaults = settings.engine, RestartSettings()
    restart = RestartSettings(
        first_wait_s=engine.restart_wait_s, max_wait_s=max(defaults.max_wait_s, engine.restart_wait_s)
    )
    return VllmSettings(engine.health_interval_s, engine.stall_timeout_s, restart)
