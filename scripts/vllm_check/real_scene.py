"""A real engine as `testing/check_engine.py` drives it: prompts in the model's tokens, patience for a slow machine."""

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tidegate.cli.model_loading import LoadedModel, load_model
from tidegate.cli.remote_engine import make_watch
from tidegate.cli.settings import EngineSettings, ModelSettings, Settings
from tidegate.engine.port import WatchedEngine
from tidegate.errors import EngineLost
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.check_engine import CHECKS, RecordingSink

PATIENCE_S = 300.0
TEXT = "The quick brown fox jumps over the lazy dog. Once upon a time there was"


class RealScene:
    """See `EngineUnderTest`. `kill` makes the engine vanish."""

    def __init__(self, loaded: LoadedModel, engine: WatchedEngine, kill: Callable[[], None]) -> None:
        self.engine = engine
        self._kill = kill
        self._tokenizer = loaded.served.tokenizer
        token_ids = self._tokenizer.encode(TEXT, add_special=False, parse_special=False)
        self.prompt = b"".join(token_id.to_bytes(4, "little") for token_id in token_ids)

    def make_request(
        self, request_id: str, *, num_choices: int = 1, max_tokens: int = 8, seed: int = 1, **fields: Any
    ) -> InferenceRequest:
        sampling, stop = SamplingParams(seed=seed), StopRules(max_tokens=max_tokens, ignore_eos=True)
        given = {"sampling": sampling, "stop": stop, "num_choices": num_choices, "prompt": self.prompt, **fields}
        return InferenceRequest(request_id, **given)

    def text(self, token_ids: list[int]) -> str:
        return self._tokenizer.decode(token_ids)

    async def until(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("the condition never held")
            await asyncio.sleep(0.005)

    async def lose(self) -> None:
        self._kill()


async def run_checks(scene: RealScene, further: dict[str, Callable[[RealScene], Awaitable[None]]]) -> int:
    """Runs the port's checks, those of the loss last, and further ones before it; returns the number that failed."""
    checks = {check.__name__: check for check in CHECKS}
    last = checks.pop("check_loss_fails_every_sink_once")
    num_failed = 0
    for name, check in (*checks.items(), *further.items(), (last.__name__, last)):
        began = time.monotonic()
        try:
            await check(scene)
        except Exception as error:
            num_failed += 1
            words = f"FAILED: {error!r}"
            traceback.print_exc()
        else:
            words = "passed"
        sys.stdout.write(f"{name}: {words} ({time.monotonic() - began:.1f} s)\n")
        sys.stdout.flush()
    return num_failed


@asynccontextmanager
async def connect_http(
    folder: str, url: str, take_note: Callable[[str], None]
) -> AsyncIterator[tuple[LoadedModel, WatchedEngine]]:
    """Yields a model's folder as it is served and the engine behind a `vllm serve`, once that is ready."""
    settings = Settings(
        model=ModelSettings(tokenizer=folder),
        engine=EngineSettings(kind="vllm-http", url=url, stall_timeout_s=120.0),
    )
    loaded = load_model(settings)
    has_compiler = loaded.grammar.compiler is not None
    watch = make_watch(settings, loaded.served, has_compiler=has_compiler, take_note=take_note)
    watch.start()
    try:
        await watch.wait_ready()
        yield loaded, watch.engine
    finally:
        await watch.aclose()


async def score(scene: RealScene, request: InferenceRequest) -> RecordingSink:
    """Runs a request to its end."""
    sink = RecordingSink(request.num_choices)
    scene.engine.submit(request, sink)
    await scene.until(lambda: sink.has_ended)
    sink.check()
    assert sink.error is None, sink.error
    return sink


async def check_served_again(scene: RealScene) -> None:
    """After a death the next engine serves, under the next epoch."""
    epoch = scene.engine.statistics().epoch
    sink = RecordingSink()
    scene.engine.submit(scene.make_request("killed", max_tokens=500), sink)
    await scene.until(lambda: sink.has_begun)
    began = time.monotonic()
    await scene.lose()
    await scene.until(lambda: sink.has_ended)
    sys.stdout.write(f"  told of the death after {1000 * (time.monotonic() - began):.0f} ms\n")
    assert isinstance(sink.error, EngineLost), sink.error
    await scene.until(lambda: scene.engine.statistics().epoch > epoch)
    sys.stdout.write(f"  ready again after {time.monotonic() - began:.0f} s\n")
    assert scene.engine.statistics().epoch == epoch + 1
    await score(scene, scene.make_request("again"))
