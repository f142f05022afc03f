"""Decode speed of our engine in one process against a bare `llama_decode` loop, alternating, as a ratio.

Both have the same model, layout, threads and context lengths. The bare loop fills the batch, calls `llama_decode` and
takes the argmax; ours is `EngineCore` with `SamplerChain` over `LlamaCppBackend`. What is missing is the process
boundary and HTTP. Both keep a fixed number of threads, so that only our own cost shows; with `--governed` ours may use
fewer while other processes take cores away, which is then most of the difference.

python bench/decode_throughput.py [--quick] [--governed] [--model FILE.gguf] [--batches 1,8,32] [--threads N]
"""

import argparse
import statistics
import time
from pathlib import Path

import msgspec
import numpy as np

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.devices import usable_processors
from tidegate.backends.llama_cpp.library import load_library
from tidegate.backends.llama_cpp.model import LlamaModel, open_context
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AbortRequest, AddRequest
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import plan_memory

Prompts = list[list[int]]


class BareLoop:
    """The least that generates greedily with llama.cpp from Python."""

    def __init__(self, options: LlamaCppOptions) -> None:
        library = load_library()
        self.api = library.api
        self.model = LlamaModel(library, Path(options.model_path), options)
        plan = plan_memory(self.model.facts(), options)
        self.vocab_size = plan.vocab_size
        self.context = open_context(library, self.model, options, plan)
        self.batch = self.api.llama_batch_init(plan.max_step_tokens, 0, 1)
        self.tokens: list[int] = []
        self.position = 0

    def start(self, prompts: Prompts) -> None:
        """Reads prompts of one length; each gets its first token."""
        self.tokens = []
        for seq_id, prompt in enumerate(prompts):
            for i, token_id in enumerate(prompt):
                self._set(i, token_id, i, seq_id, wanted=i == len(prompt) - 1)
            self.tokens += self._decode(len(prompt), 1)
        self.position = len(prompts[0])

    def step(self) -> int:
        """Generates one token for each sequence; returns how many."""
        for seq_id, token_id in enumerate(self.tokens):
            self._set(seq_id, token_id, self.position, seq_id, wanted=True)
        self.tokens = self._decode(len(self.tokens), len(self.tokens))
        self.position += 1
        return len(self.tokens)

    def stop(self) -> None:
        memory = self.api.llama_get_memory(self.context)
        for seq_id in range(len(self.tokens)):
            self.api.llama_memory_seq_rm(memory, seq_id, -1, -1)

    def close(self) -> None:
        self.api.llama_batch_free(self.batch)
        self.api.llama_free(self.context)
        self.model.close()

    def _set(self, i: int, token_id: int, position: int, seq_id: int, *, wanted: bool) -> None:
        batch = self.batch
        batch.token[i], batch.pos[i], batch.logits[i] = token_id, position, wanted
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, seq_id

    def _decode(self, num_tokens: int, num_rows: int) -> list[int]:
        self.batch.n_tokens = num_tokens
        if self.api.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama_decode failed in the bare loop")
        logits = np.ctypeslib.as_array(self.api.llama_get_logits(self.context), (num_rows, self.vocab_size))
        chosen: list[int] = logits.argmax(axis=1).tolist()
        return chosen


class OurEngine:
    """Backend, scheduler and sampler, without process and socket."""

    def __init__(self, options: LlamaCppOptions) -> None:
        self.backend = LlamaCppBackend(options)
        caps = self.backend.caps
        self.core = EngineCore(
            self.backend, SamplerChain(caps.vocab_size, caps.eos_token_ids), StepLimits(has_prefix_cache=False)
        )
        self.num_running = 0

    def start(self, prompts: Prompts) -> None:
        for i, prompt in enumerate(prompts):
            request = InferenceRequest(
                request_id=str(i),
                prompt=np.array(prompt, "<u4").tobytes(),
                sampling=SamplingParams(temperature=0.0),
                stop=StopRules(max_tokens=self.backend.caps.max_model_len - len(prompt), ignore_eos=True),
            )
            self.core.apply(AddRequest(request), time.monotonic())
        self.num_running = len(prompts)
        begun: set[str] = set()
        while len(begun) < self.num_running:
            begun.update(delta.request_id for delta in self.core.step(time.monotonic()) if delta.token_ids)

    def step(self) -> int:
        """Makes one step; returns the number of new tokens."""
        return sum(len(delta.token_ids) for delta in self.core.step(time.monotonic()))

    def stop(self) -> None:
        for i in range(self.num_running):
            self.core.apply(AbortRequest(str(i), None), time.monotonic())
        while self.core.has_work:
            self.core.step(time.monotonic())

    def close(self) -> None:
        self.backend.close()


def rate(engine: BareLoop | OurEngine, num_steps: int) -> float:
    """Returns tokens per second over some steps."""
    start = time.perf_counter()
    num_tokens = sum(engine.step() for _ in range(num_steps))
    return num_tokens / (time.perf_counter() - start)


def compare(bare: BareLoop, ours: OurEngine, batch: int, *, prompt_len: int, num_slices: int) -> None:
    """Prints one line: both rates, and the median of the ratios of neighbouring slices."""
    rng = np.random.default_rng(batch)
    prompts = [rng.integers(1000, 30_000, prompt_len).tolist() for _ in range(batch)]
    bare.start(prompts)
    ours.start(prompts)
    num_steps = max(4, 24 // batch)
    rates: list[tuple[float, float]] = []
    for i in range(num_slices + 1):
        # Who goes first changes, so that neither always runs behind the other's heat.
        pair = (
            [rate(bare, num_steps), rate(ours, num_steps)] if i % 2 else [rate(ours, num_steps), rate(bare, num_steps)]
        )
        if i > 0:
            rates.append((pair[0], pair[1]) if i % 2 else (pair[1], pair[0]))
    bare.stop()
    ours.stop()
    ratio = statistics.median(mine / base for base, mine in rates)
    base, mine = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"{batch:>6}{base:>12.1f}{mine:>12.1f}{ratio:>9.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="short prompts and few slices: under half a minute")
    parser.add_argument("--governed", action="store_true", help="let our engine choose its number of threads")
    parser.add_argument("--model", default=None)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--threads", type=int, default=usable_processors())
    parser.add_argument("--layout", choices=["auto", "per_sequence", "unified"], default="auto")
    parser.add_argument("--flash-attn", choices=["auto", "on", "off"], default="auto")
    args = parser.parse_args()
    batches = [int(part) for part in args.batches.split(",")]
    options = LlamaCppOptions(
        model_path=args.model or bundled_model(),
        max_model_len=512,
        max_sequences=max(batches),
        n_threads=args.threads,
        kv_layout=args.layout,
        flash_attn=args.flash_attn,
    )
    mine = msgspec.structs.replace(options, n_threads=None) if args.governed else options
    bare, ours = BareLoop(options), OurEngine(mine)
    print(f"{ours.backend.caps.build}, {ours.backend.memory_plan.layout}, {args.threads} threads")
    print(f"{'batch':>6}{'bare tok/s':>12}{'ours tok/s':>12}{'ratio':>9}")
    for batch in batches:
        compare(bare, ours, batch, prompt_len=16 if args.quick else 64, num_slices=4 if args.quick else 12)
    bare.close()
    ours.close()


if __name__ == "__main__":
    main()
