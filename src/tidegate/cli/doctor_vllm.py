"""The part of `tidegate doctor` that looks at vLLM in this process: whether it is there, and whether it starts."""

import asyncio

from tidegate.cli.doctor_remote import describe_model
from tidegate.cli.finding import Finding, ok, problem
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.settings import Settings
from tidegate.cli.vllm_engine import make_vllm_watch
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.vllm.engine_arguments import UnusableOptions
from tidegate.engines.vllm.installed_vllm import check_main, vllm_version

START_TIMEOUT_S = 900.0
"""vLLM loads weights, and on GPUs compiles and captures graphs."""
_SUBJECT = "vllm"


def look_at_vllm(settings: Settings, loaded: LoadedModel, *, starts_engine: bool) -> Finding:
    """What is missing altogether has been found when the model was loaded."""
    try:
        check_main()
    except UnusableOptions as error:
        return problem(_SUBJECT, str(error), "start the server with the `tidegate` program")
    if not starts_engine:
        given = ", ".join(sorted(settings.engine.options)) or "none"
        return ok(_SUBJECT, f"vllm {vllm_version()} is installed; options given: {given}")
    return asyncio.run(_start(settings, loaded))


async def _start(settings: Settings, loaded: LoadedModel) -> Finding:
    """Starts vLLM with these settings, waits until it is ready, and ends it."""
    notes: list[str] = []
    watch = make_vllm_watch(
        settings, loaded.served, has_compiler=loaded.grammar.compiler is not None, take_note=notes.append
    )
    began = asyncio.get_running_loop().time()
    watch.start()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await watch.wait_ready()
        took_s = asyncio.get_running_loop().time() - began
        model = watch.engine.statistics().model
    except (EngineStartFailed, TimeoutError) as error:
        words = str(error) or f"it was not ready within {START_TIMEOUT_S:g} s"
        return problem(_SUBJECT, words, "vLLM's own lines above say more")
    finally:
        await watch.aclose()
    if model is None:
        return problem(_SUBJECT, "started without saying what it serves", "report this as a fault of tidegate")
    return ok(_SUBJECT, "; ".join([f"ready after {took_s:.0f} s: {describe_model(model)}", *notes]))
