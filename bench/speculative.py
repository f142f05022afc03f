"""Tokens a second with and without speculation, on text that quotes its prompt and on ordinary answers, as a ratio.

One backend, two engines over it in turns: `EngineCore` with and without drafts. The quoting load asks for a passage to
be said again, the ordinary one asks questions. Counted is the time from the first token of all to the end of all.

python bench/speculative.py [--rounds 3] [--tokens 64] [--batches 1,8] [--drafts 5] [--repeatable] [--model FILE.gguf]
"""

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np

from bundled_model import bundled_model
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.devices import usable_processors
from tidegate.backends.llama_cpp.options import LlamaCppOptions
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AddRequest
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.text.gguf_tokenizer import GgufTokenizer

PLACES = ("harbour", "village", "mountain", "station", "library", "garden", "market", "river")
PASSAGE = (
    "The old {0} lies an hour north of the town. In the morning the keeper opens the gate, sweeps the yard and puts a "
    "kettle on the stove. Nobody comes before nine. Then the first visitors of the {0} arrive with their baskets."
)
QUESTION = "<|im_start|>user\nWrite a short story about a {0} in winter.<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True, slots=True)
class Run:
    """What one engine did: new tokens a second, steps, drafts and those that were accepted."""

    rate: float
    num_steps: int
    num_drafted: int
    num_accepted: int


def prompts_of(load: str, tokenizer: GgufTokenizer, batch: int) -> list[list[int]]:
    """Returns one prompt for each sequence."""
    texts = []
    for place in PLACES[:batch]:
        passage = PASSAGE.format(place)
        texts.append(f"{passage}\n\n{passage}\n\n{passage[:24]}" if load == "quoting" else QUESTION.format(place))
    return [tokenizer.encode(text, add_special=True, parse_special=True) for text in texts]


def measure(backend: LlamaCppBackend, prompts: list[list[int]], num_tokens: int, num_drafts: int) -> Run:
    """Generates greedily for all prompts at once."""
    caps = backend.caps
    limits = StepLimits(max_draft_tokens=num_drafts)
    core = EngineCore(backend, SamplerChain(caps.vocab_size, caps.eos_token_ids), limits)
    for i, prompt in enumerate(prompts):
        stop = StopRules(max_tokens=num_tokens, ignore_eos=True)
        packed = np.array(prompt, "<u4").tobytes()
        core.apply(
            AddRequest(InferenceRequest(str(i), packed, SamplingParams(temperature=0.0), stop)), time.monotonic()
        )
    begun: set[str] = set()
    while len(begun) < len(prompts):
        begun.update(delta.request_id for delta in core.step(time.monotonic()) if delta.token_ids)
    before, start = core.statistics(), time.perf_counter()
    while core.has_work:
        core.step(time.monotonic())
    seconds, after = time.perf_counter() - start, core.statistics()
    return Run(
        (after.num_output_tokens - before.num_output_tokens) / seconds,
        after.num_steps - before.num_steps,
        after.num_draft_tokens,
        after.num_accepted_tokens,
    )


def compare(backend: LlamaCppBackend, prompts: list[list[int]], args: argparse.Namespace) -> str:
    """Returns a row of the table: medians, and the median of the ratios of neighbours."""
    pairs: list[tuple[Run, Run]] = []
    for i in range(args.rounds + 1):
        order = (0, args.drafts) if i % 2 else (args.drafts, 0)
        runs = {drafts: measure(backend, prompts, args.tokens, drafts) for drafts in order}
        if i > 0:
            pairs.append((runs[0], runs[args.drafts]))
    without = statistics.median(pair[0].rate for pair in pairs)
    with_drafts = statistics.median(pair[1].rate for pair in pairs)
    ratio = statistics.median(pair[1].rate / pair[0].rate for pair in pairs)
    last = pairs[-1]
    accepted = last[1].num_accepted / last[1].num_drafted if last[1].num_drafted else 0.0
    steps = last[0].num_steps / last[1].num_steps
    return f"{without:>10.1f}{with_drafts:>10.1f}{ratio:>8.2f}{steps:>8.2f}{accepted:>10.0%}{last[1].num_drafted:>9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--drafts", type=int, default=5)
    parser.add_argument("--threads", type=int, default=usable_processors())
    parser.add_argument("--repeatable", action="store_true")
    parser.add_argument("--model", default=None)
    args = parser.parse_args()
    path = args.model or bundled_model()
    tokenizer = GgufTokenizer(path)
    options = LlamaCppOptions(
        model_path=path, max_model_len=512, max_sequences=8, n_threads=args.threads, repeatable=args.repeatable
    )
    backend = LlamaCppBackend(options)
    print(f"{backend.caps.build}, {args.threads} threads, repeatable: {args.repeatable}")
    print(f"{'load':<10}{'batch':>6}{'without':>10}{'with':>10}{'ratio':>8}{'steps':>8}{'accepted':>10}{'drafted':>9}")
    for load in ("quoting", "ordinary"):
        for batch in (int(part) for part in args.batches.split(",")):
            row = compare(backend, prompts_of(load, tokenizer, batch), args)
            print(f"{load:<10}{batch:>6}{row}", flush=True)
    backend.close()


if __name__ == "__main__":
    main()
