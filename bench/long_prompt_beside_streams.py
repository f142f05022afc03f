"""The time between tokens of eight streams while a prompt of 4,000 tokens is read beside them, and without it.

Bound: the long prompt raises the 99th percentile by one prefill chunk at most. The same by declared prices, exactly:
tests/core/test_long_prompt_beside_streams.py.
Usage: python bench/long_prompt_beside_streams.py [--chunk 64] [--threads N]
"""

import argparse
import time
from itertools import pairwise

import numpy as np

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.core.budget import StepLimits
from tidegate.core.plan import KvDrop, PrefillSlice, StepPlan
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AddRequest
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.requests import make_request

NUM_STREAMS, NUM_TOKENS, LONG = 8, 90, 4000


def tokens(seed: int, length: int) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(1000, 30_000, length).tolist()
    return found


def gaps_ms(backend: LlamaCppBackend, chunk: int, *, has_long_prompt: bool) -> list[float]:
    """Returns the times between tokens of all streams, from their tenth token on until the long prompt is read."""
    caps = backend.caps
    limits = StepLimits(max_prefill_tokens=chunk, has_prefix_cache=False)
    core = EngineCore(backend, SamplerChain(caps.vocab_size, caps.eos_token_ids), limits)
    for i in range(NUM_STREAMS):
        core.apply(AddRequest(make_request(f"s{i}", tokens(i, 32), max_tokens=NUM_TOKENS)), time.monotonic())
    told: dict[str, list[float]] = {f"s{i}": [] for i in range(NUM_STREAMS)}
    is_asked = False
    while core.has_work:
        now = time.monotonic()
        if has_long_prompt and not is_asked and all(len(times) >= 10 for times in told.values()):
            core.apply(AddRequest(make_request("long", tokens(99, LONG), max_tokens=1)), now)
            is_asked = True
        for delta in core.step(now):
            if delta.request_id in told:
                told[delta.request_id] += [time.monotonic()] * len(delta.token_ids)
    return [(b - a) * 1000 for times in told.values() for a, b in pairwise(times[9:])]


def chunk_ms(backend: LlamaCppBackend, chunk: int) -> float:
    """Returns what reading one chunk at the end of a long prompt takes by itself."""
    prompt, at = tokens(98, LONG), 0
    while at + chunk < LONG:
        start = time.perf_counter()
        backend.execute(StepPlan(prefill=[PrefillSlice(0, at, prompt[at : at + chunk], wants_last=False)]))
        last = time.perf_counter() - start
        at += chunk
    backend.execute(StepPlan(moves=[KvDrop(0)]))
    return last * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    backend = LlamaCppBackend(
        LlamaCppOptions(
            model_path=bundled_model(), max_model_len=4352, max_sequences=NUM_STREAMS + 1, n_threads=options.threads
        )
    )
    alone = np.percentile(gaps_ms(backend, options.chunk, has_long_prompt=False), [50, 99])
    beside = np.percentile(gaps_ms(backend, options.chunk, has_long_prompt=True), [50, 99])
    one = chunk_ms(backend, options.chunk)
    print(f"alone:  p50 {alone[0]:.0f} ms, p99 {alone[1]:.0f} ms")
    print(f"beside: p50 {beside[0]:.0f} ms, p99 {beside[1]:.0f} ms, chunks of {options.chunk} tokens")
    print(f"a chunk at the end of the prompt takes {one:.0f} ms: p99 rises by {(beside[1] - alone[1]) / one:.2f} of it")
    backend.close()


if __name__ == "__main__":
    main()
