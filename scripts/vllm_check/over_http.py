"""The checks of the port over a `vllm serve` that runs: over_http.py MODEL_FOLDER URL PROCESS_ID COLLECTOR_PORT."""

import asyncio
import os
import signal
import sys
from functools import partial

import uvloop
from fields import FIELD_CHECKS
from real_scene import RealScene, connect_http, run_checks
from traces import OtlpCollector, check_trace


async def check(folder: str, url: str, process_id: int, collector: OtlpCollector) -> int:
    async with connect_http(folder, url, lambda note: print(f"note: {note}", flush=True)) as (loaded, engine):
        model = engine.statistics().model
        sys.stdout.write(f"ready; {model}\n")
        assert model is not None and model.grammar_backend == "guidance", "no constraints are served"
        scene = RealScene(loaded, engine, lambda: os.killpg(os.getpgid(process_id), signal.SIGKILL))
        return await run_checks(
            scene, {**FIELD_CHECKS, check_trace.__name__: partial(check_trace, collector=collector)}
        )


def main(folder: str, url: str, process_id: str, port: str) -> int:
    with OtlpCollector(port=int(port)) as collector, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return 1 if runner.run(check(folder, url, int(process_id), collector)) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
