"""What prompts that are only read cost running streams: the time between two tokens, with and without such a load.

Between two steps of the streams stands at most one batch, of one prefill share of tokens or a single longer prompt. So
the longest gap should be about a step plus a batch. Runs the engine's core on the bundled model in this process.
Usage: python bench/pooled_beside_streams.py [--threads 2] [--streams 8] [--share 64] [--prompt-tokens 64] [--rounds 3]
                                             [--steps 60]
"""

import argparse
import statistics
import time
from collections.abc import Iterator

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.open_model import OpenModel, open_model
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AbortRequest, AddRequest
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.sampling import StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.requests import make_request

WARM_UP_STEPS = 12


class Load:
    """A core with streams that do not end; prompts are kept waiting where `is_pooling`."""

    def __init__(self, model: OpenModel, options: argparse.Namespace) -> None:
        caps = model.backend.caps
        chooser = SamplerChain(caps.vocab_size, caps.eos_token_ids)
        limits = StepLimits(max_prefill_tokens=options.share)
        self.core = EngineCore(model.backend, chooser, limits, pooling=model.pooling)
        self._prompt = [1000 + 7 * index for index in range(options.prompt_tokens)]
        self._num_streams = options.streams
        self._num_steps = options.steps
        self._num_together = max(1, options.share // options.prompt_tokens)
        self._num_prompts = 0

    def gaps(self, *, is_pooling: bool) -> Iterator[float]:
        """Yields the seconds between two tokens of the streams."""
        rules = StopRules(max_tokens=10_000, ignore_eos=True)
        names = [f"s{index}" for index in range(self._num_streams)]
        for name in names:
            self._add(AddRequest(make_request(name, "The capital of France is", stop=rules)))
        last, num_seen = None, 0
        while num_seen < self._num_steps + WARM_UP_STEPS:
            while is_pooling and self.core.statistics().num_waiting < 16:
                self._num_prompts += 1
                request = make_request(f"p{self._num_prompts}", self._prompt, pooling=PoolingTask.EMBED)
                self._add(AddRequest(request))
            deltas = self.core.step(time.perf_counter())
            now = time.perf_counter()
            if any(delta.token_ids for delta in deltas):
                num_seen += 1
                if last is not None and num_seen > WARM_UP_STEPS:
                    yield now - last
                last = now
        for name in names:
            self._add(AbortRequest(name))
        while self.core.has_work:
            self.core.step(time.perf_counter())

    def batch_s(self) -> float:
        """Returns the median seconds of a batch that stands alone, of one share."""
        found = []
        for _ in range(7):
            for _ in range(self._num_together):
                self._num_prompts += 1
                self._add(AddRequest(make_request(f"p{self._num_prompts}", self._prompt, pooling=PoolingTask.EMBED)))
            start = time.perf_counter()
            self.core.step(start)
            found.append(time.perf_counter() - start)
        return statistics.median(found)

    def _add(self, command: AddRequest | AbortRequest) -> None:
        self.core.apply(command, time.perf_counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--share", type=int, default=64)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="of the streams, counted in each round")
    options = parser.parse_args()
    llama = LlamaCppOptions(
        model_path=bundled_model(), max_model_len=512, max_sequences=16, max_step_tokens=128, n_threads=options.threads
    )
    model = open_model(llama)
    try:
        if model.pooling is None:
            raise SystemExit("the bundled model does not read here: no memory for it")
        _measure(Load(model, options), options)
    finally:
        if model.pooling is not None:
            model.pooling.close()
        model.backend.close()


def _measure(load: Load, options: argparse.Namespace) -> None:
    batch_s = load.batch_s()
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(options.rounds):
        alone += load.gaps(is_pooling=False)
        beside += load.gaps(is_pooling=True)
    _report(alone, beside, min(batch_s, load.batch_s()), options)


def _report(alone: list[float], beside: list[float], batch_s: float, options: argparse.Namespace) -> None:
    step_s = statistics.median(alone)
    print(f"{options.streams} streams, prompts of {options.prompt_tokens} tokens, share {options.share}")
    for name, gaps in (("streams alone", alone), ("beside prompts", beside)):
        ordered = sorted(gaps)
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        told = f"gap p50 {statistics.median(gaps) * 1e3:6.1f} ms  p99 {p99 * 1e3:6.1f} ms"
        print(f"{name:15s} {told}  longest {ordered[-1] * 1e3:6.1f} ms")
    print(f"one batch alone {batch_s * 1e3:6.1f} ms; step + batch {(step_s + batch_s) * 1e3:6.1f} ms")
    print(f"p50 beside / (step + batch): {statistics.median(beside) / (step_s + batch_s):.2f}")


if __name__ == "__main__":
    main()
