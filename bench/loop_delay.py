"""How long preparing a large body on a thread keeps the event loop from everything else.

    python bench/loop_delay.py [MiB]

A ticker on the event loop asks for a turn every millisecond; printed is the longest time without one, for each kind
of body, beside the time of the preparation. The tokenizer is that of the simulated engine: one token a byte, so that
texts cost the most.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import uvloop

from tidegate.cli.model_loading import load_model
from tidegate.cli.settings_sources import resolve
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.errors import ServeError
from tidegate.inference.model_info import ModelInfo
from tidegate.serving.call import Call
from tidegate.serving.prepare import Preparation
from tidegate.serving.prepare_chat import prepare_chat
from tidegate.serving.prepare_completion import prepare_completion
from tidegate.serving.token_routes import tokenize
from tidegate.system import SystemClock, entropy

Prepare = Callable[[Call, Preparation], Any]

MODEL_LEN = 131_072
TICK_S = 0.001
WORDS = "The quick brown fox jumps over the lazy dog, and 12345 more. "


def chat(content: str) -> bytes:
    return json.dumps({"model": "simulated", "messages": [{"role": "user", "content": content}]}).encode()


def bodies(num_bytes: int) -> dict[str, tuple[Prepare, bytes]]:
    text = WORDS * (num_bytes // len(WORDS))
    head = b'{"model":"simulated","messages":[{"role":"user","content":"x"}],'
    ids = {"model": "simulated", "prompt": [65] * (num_bytes // 4)}
    return {
        "text": (prepare_chat, chat(text)),
        "escapes": (prepare_chat, chat('"\\\n' * (num_bytes // 6))),
        "other scripts": (prepare_chat, chat("你好世界" * (num_bytes // 24))),
        "brackets in a string": (prepare_chat, chat('[{"a":' * (num_bytes // 7))),
        "token ids": (prepare_completion, json.dumps(ids).encode()),
        "empty lists": (prepare_chat, head + b'"zzz":[' + b"[]," * (num_bytes // 3) + b"[]]}"),
        "unknown members": (prepare_chat, head + b",".join(b'"k%d":1' % i for i in range(num_bytes // 12)) + b"}"),
        "text that fits": (prepare_completion, json.dumps({"model": "simulated", "prompt": text[:130_000]}).encode()),
        "text to tokenize": (tokenize, json.dumps({"model": "simulated", "prompt": text[:4_000_000]}).encode()),
    }


async def measure(prepare: Prepare, body: bytes, preparation: Preparation, pool: ThreadPoolExecutor) -> str:
    gaps: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    gaps.clear()
    begin, verdict = time.monotonic(), "prepared"
    try:
        await asyncio.get_running_loop().run_in_executor(pool, prepare, Call("/v1/x", "w", 0.0, body), preparation)
    except ServeError as error:
        verdict = error.limit.name if error.limit is not None else error.message
    elapsed_s = time.monotonic() - begin
    await asyncio.sleep(2 * TICK_S)
    ticker.cancel()
    return f"{len(body) / 2**20:5.1f} MiB {elapsed_s * 1000:6.0f} ms, longest gap {max(gaps) * 1000:5.0f} ms: {verdict}"


async def main() -> None:
    num_bytes = int(sys.argv[1] if len(sys.argv) > 1 else 30) * 2**20
    settings = resolve(None, {}, {"engine.kind": "simulated"}, is_file_required=False).settings
    info = ModelInfo(258, MODEL_LEN, (257,), 8, 65536, 16, "feed", "simulated")
    served = load_model(settings).served
    preparation = Preparation(served, info, UnknownFieldPolicy.REPORT, SystemClock(), entropy)
    with ThreadPoolExecutor(2) as pool:
        for name, (prepare, body) in bodies(num_bytes).items():
            print(f"{name:22}", await measure(prepare, body, preparation, pool), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
