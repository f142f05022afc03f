"""The checks of the port over `AsyncLLM` in this process: library.py MODEL_FOLDER."""

import asyncio
import os
import signal
import sys
import time
from functools import partial

import uvloop
from fields import FIELD_CHECKS
from real_scene import RealScene, check_served_again, run_checks
from traces import OtlpCollector, check_trace

from tidegate.cli.model_loading import load_model
from tidegate.cli.settings import EngineSettings, ModelSettings, Settings
from tidegate.cli.vllm_engine import make_vllm_watch

OPTIONS = {"dtype": "bfloat16", "enforce_eager": True}


async def check(folder: str, collector: OtlpCollector) -> int:
    options = {**OPTIONS, "otlp_traces_endpoint": f"{collector.url}/v1/traces"}
    settings = Settings(
        model=ModelSettings(source=folder, max_model_len=2048),
        engine=EngineSettings(kind="vllm", options=options, stall_timeout_s=120.0),
    )
    loaded = load_model(settings)
    has_compiler = loaded.grammar.compiler is not None
    watch = make_vllm_watch(
        settings, loaded.served, has_compiler=has_compiler, take_note=lambda note: print(f"note: {note}", flush=True)
    )
    lag = asyncio.create_task(worst_lag())
    began = time.monotonic()
    watch.start()
    try:
        await watch.wait_ready()
        lag.cancel()
        sys.stdout.write(f"ready after {time.monotonic() - began:.0f} s; {watch.engine.statistics().model}\n")

        def kill() -> None:
            pid = watch.engine.process_id
            assert pid is not None
            os.kill(pid, signal.SIGKILL)

        scene = RealScene(loaded, watch.engine, kill)
        further = {check_trace.__name__: partial(check_trace, collector=collector)}
        return await run_checks(scene, {**FIELD_CHECKS, **further, check_served_again.__name__: check_served_again})
    finally:
        await asyncio.gather(lag, return_exceptions=True)
        await watch.aclose()


async def worst_lag() -> None:
    """Tells how long the event loop was held up at worst while vLLM started."""
    worst, loop = 0.0, asyncio.get_running_loop()
    try:
        while True:
            began = loop.time()
            await asyncio.sleep(0.01)
            worst = max(worst, loop.time() - began - 0.01)
    finally:
        sys.stdout.write(f"the loop was held up for {1000 * worst:.0f} ms at worst\n")


if __name__ == "__main__":
    with OtlpCollector() as receiver, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(1 if runner.run(check(sys.argv[1], receiver)) else 0)
