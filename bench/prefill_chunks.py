"""Prefill speed by the number of prompt tokens in one step: how small a step may be before it costs throughput.

A step is the unit in which an abort takes effect and in which running streams wait, so it should be short.
Usage: python bench/prefill_chunks.py [--threads N] [--rounds 3]
"""

import argparse
import statistics
import time

import numpy as np

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.core.plan import KvDrop, PrefillSlice, StepPlan
from tidegate.sizing.llama_cpp_options import LlamaCppOptions

PROMPT_TOKENS = 512
CHUNKS = (16, 32, 64, 128, 256, 512)


def prefill_rate(backend: LlamaCppBackend, chunk: int, salt: int) -> float:
    """Returns tokens per second over one prompt of 512 tokens, read in steps of `chunk`."""
    prompt = np.random.default_rng(salt).integers(1000, 30_000, PROMPT_TOKENS).tolist()
    start = time.perf_counter()
    for at in range(0, PROMPT_TOKENS, chunk):
        is_last = at + chunk >= PROMPT_TOKENS
        backend.execute(StepPlan(prefill=[PrefillSlice(0, at, prompt[at : at + chunk], wants_last=is_last)]))
    rate = PROMPT_TOKENS / (time.perf_counter() - start)
    backend.execute(StepPlan(moves=[KvDrop(0)]))
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    backend = LlamaCppBackend(
        LlamaCppOptions(model_path=bundled_model(), max_model_len=1024, max_sequences=8, n_threads=options.threads)
    )
    rates: dict[int, list[float]] = {chunk: [] for chunk in CHUNKS}
    prefill_rate(backend, 512, 0)
    for salt in range(options.rounds):
        for chunk in CHUNKS:
            rates[chunk].append(prefill_rate(backend, chunk, salt))
    best = max(statistics.median(values) for values in rates.values())
    for chunk, values in rates.items():
        median = statistics.median(values)
        step_ms = chunk / median * 1000
        print(f"{chunk:4d} tokens a step: {median:6.1f} tok/s  x {median / best:.2f}  {step_ms:6.0f} ms a step")
    backend.close()


if __name__ == "__main__":
    main()
