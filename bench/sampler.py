"""Times the sampler on 64 rows, as milliseconds for one step and as a ratio to a bare argmax over the same array.

python bench/sampler.py [--rows 64] [--vocab 150000] [--repeat 5]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tidegate.core.backend import StepLogits
from tidegate.core.chooser import ChooseRow
from tidegate.core.sampler.chain import SamplerChain
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

NUM_WARM_TOKENS = 3

CASES: list[tuple[str, SamplingParams, int | None]] = [
    ("greedy", SamplingParams(temperature=0.0), None),
    ("greedy, top 5 logprobs", SamplingParams(temperature=0.0), 5),
    ("greedy, penalties", SamplingParams(temperature=0.0, presence_penalty=0.5, repetition_penalty=1.1), None),
    ("default (temperature 1)", SamplingParams(), None),
    ("default, top 5 logprobs", SamplingParams(), 5),
    ("default, penalties", SamplingParams(frequency_penalty=0.5, presence_penalty=0.5), None),
    ("temperature 0.7", SamplingParams(temperature=0.7), None),
    ("top_k 50", SamplingParams(top_k=50), None),
    ("top_p 0.9", SamplingParams(top_p=0.9), None),
    ("min_p 0.05", SamplingParams(min_p=0.05), None),
    ("0.7, top_k 50, top_p 0.9, min_p 0.05", SamplingParams(temperature=0.7, top_k=50, top_p=0.9, min_p=0.05), None),
    ("allowed_token_ids, 1000 of them", SamplingParams(allowed_token_ids=tuple(range(1000))), None),
    ("logit_bias, 300 entries", SamplingParams(logit_bias=tuple((i, 1.0) for i in range(300))), None),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--vocab", type=int, default=150_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    shapes = {"peaked": 3.0, "flat": 0.5}
    for shape, spread in shapes.items():
        values = np.random.default_rng(1).standard_normal((options.rows, options.vocab), dtype=np.float32)
        values *= np.float32(spread)
        values[:, :8] += np.float32(4 * spread)
        bare_s = best_of(options.repeat, lambda values=values: values.argmax(axis=1))  # type: ignore[misc]
        print(f"\n{options.rows} rows x {options.vocab}, {shape} logits: bare argmax {bare_s * 1e3:.2f} ms")
        print(f"{'parameters':40}{'ms':>9}{'x argmax':>10}")
        for name, params, num_logprobs in CASES:
            step_s = time_case(values, params, num_logprobs, options.repeat)
            print(f"{name:40}{step_s * 1e3:9.2f}{step_s / bare_s:10.1f}")


def time_case(values: npt.NDArray[np.float32], params: SamplingParams, num_logprobs: int | None, repeat: int) -> float:
    """Returns the best time of one `choose` over all rows, in seconds."""
    chain = SamplerChain(values.shape[1], [2])
    prompt = np.arange(500, dtype="<u4").tobytes()
    for key in range(len(values)):
        request = InferenceRequest("bench", prompt, params, StopRules(max_tokens=1000), num_logprobs=num_logprobs)
        chain.open(key, request, key)
    logits = StepLogits([(key, 0) for key in range(len(values))], values)
    num_generated = 0

    def step() -> None:
        nonlocal num_generated
        chain.choose([ChooseRow(key, key, num_generated) for key in range(len(values))], logits)
        num_generated += 1

    for _ in range(NUM_WARM_TOKENS):
        step()
    return best_of(repeat, step)


def best_of(repeat: int, act: Callable[[], object]) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
