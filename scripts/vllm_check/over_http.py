"""The checks of the port over a `vllm serve` that runs: over_http.py MODEL_FOLDER URL PROCESS_ID."""

import asyncio
import os
import signal
import sys

import uvloop
from fields import FIELD_CHECKS
from real_scene import RealScene, run_checks

from tidegate.cli.model_loading import load_model
from tidegate.cli.remote_engine import make_watch
from tidegate.cli.settings import EngineSettings, ModelSettings, Settings


async def check(folder: str, url: str, process_id: int) -> int:
    settings = Settings(
        model=ModelSettings(tokenizer=folder),
        engine=EngineSettings(kind="vllm-http", url=url, stall_timeout_s=120.0),
    )
    loaded = load_model(settings)
    has_compiler = loaded.grammar.compiler is not None
    watch = make_watch(
        settings, loaded.served, has_compiler=has_compiler, take_note=lambda note: print(f"note: {note}", flush=True)
    )
    watch.start()
    try:
        await watch.wait_ready()
        sys.stdout.write(f"ready; {watch.engine.statistics().model}\n")
        scene = RealScene(loaded, watch.engine, lambda: os.killpg(os.getpgid(process_id), signal.SIGKILL))
        further = dict(FIELD_CHECKS)
        model = watch.engine.statistics().model
        if model is None or model.grammar_backend is None:
            del further["check_grammars"]
        return await run_checks(scene, further)
    finally:
        await watch.aclose()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(1 if runner.run(check(sys.argv[1], sys.argv[2], int(sys.argv[3]))) else 0)
