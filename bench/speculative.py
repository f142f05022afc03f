"""Tokens a second with and without speculation, on text that quotes its prompt and on ordinary answers, as a ratio.

One backend, two engines over it in turns: `EngineCore` with and without drafts. The quoting load asks for a passage to
be said again, the ordinary one asks questions. Counted is the time from the first token of all to the end of all.

python bench/speculative.py [--rounds 3] [--tokens 64] [--batches 1,8] [--drafts 5] [--repeatable] [--model FILE.gguf]
python bench/speculative.py --cost-of-repeatable    what `engine.repeatable` costs without guesses, as a ratio
python bench/speculative.py --same-text             how many greedy texts guesses change [--repeatable: none]
"""

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np

import harness_path  # noqa: F401
from bundled_model import bundled_model
from harness.quoting_prompts import quoted_persons, repeated_tokens
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.devices import usable_processors
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.messages import AddRequest
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
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


def make_core(backend: LlamaCppBackend, prompts: list[list[int]], num_tokens: int, num_drafts: int) -> EngineCore:
    """Returns an engine that has all prompts to answer, greedily."""
    caps = backend.caps
    limits = StepLimits(max_draft_tokens=num_drafts, has_prefix_cache=False)
    core = EngineCore(backend, SamplerChain(caps.vocab_size, caps.eos_token_ids), limits)
    for i, prompt in enumerate(prompts):
        stop = StopRules(max_tokens=num_tokens, ignore_eos=True)
        packed = np.array(prompt, "<u4").tobytes()
        core.apply(
            AddRequest(InferenceRequest(str(i), packed, SamplingParams(temperature=0.0), stop)), time.monotonic()
        )
    return core


def measure(backend: LlamaCppBackend, prompts: list[list[int]], num_tokens: int, num_drafts: int) -> Run:
    """Generates greedily for all prompts at once."""
    core = make_core(backend, prompts, num_tokens, num_drafts)
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


def make_backend(path: str, args: argparse.Namespace, *, repeatable: bool) -> LlamaCppBackend:
    return LlamaCppBackend(
        LlamaCppOptions(
            model_path=path, max_model_len=512, max_sequences=8, n_threads=args.threads, repeatable=repeatable
        )
    )


def compare_drafts(path: str, tokenizer: GgufTokenizer, args: argparse.Namespace) -> None:
    backend = make_backend(path, args, repeatable=args.repeatable)
    print(f"{backend.caps.build}, {args.threads} threads, repeatable: {args.repeatable}")
    print(f"{'load':<10}{'batch':>6}{'without':>10}{'with':>10}{'ratio':>8}{'steps':>8}{'accepted':>10}{'drafted':>9}")
    for load in ("quoting", "ordinary"):
        for batch in batches_of(args):
            row = compare(backend, prompts_of(load, tokenizer, batch), args)
            print(f"{load:<10}{batch:>6}{row}", flush=True)
    backend.close()


def compare_repeatable(path: str, tokenizer: GgufTokenizer, args: argparse.Namespace) -> None:
    """Two backends in turns, no guesses."""
    backends = {repeatable: make_backend(path, args, repeatable=repeatable) for repeatable in (False, True)}
    print(f"{backends[False].caps.build}, {args.threads} threads, ordinary text, no guesses")
    print(f"{'batch':>6}{'ordinary':>10}{'repeatable':>12}{'ratio':>8}")
    for batch in batches_of(args):
        prompts = prompts_of("ordinary", tokenizer, batch)
        pairs = []
        for i in range(args.rounds + 1):
            order = (False, True) if i % 2 else (True, False)
            rates = {which: measure(backends[which], prompts, args.tokens, 0).rate for which in order}
            if i > 0:
                pairs.append((rates[False], rates[True]))
        ordinary, repeatable = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
        print(f"{batch:>6}{ordinary:>10.1f}{repeatable:>12.1f}{ratio:>8.3f}", flush=True)
    for backend in backends.values():
        backend.close()


def compare_text(path: str, tokenizer: GgufTokenizer, args: argparse.Namespace) -> None:
    """Counts greedy texts that differ with and without guesses, in two orders of neighbours without, too."""
    backend = make_backend(path, args, repeatable=args.repeatable)
    print(f"{backend.caps.build}, {args.threads} threads, repeatable: {args.repeatable}, {args.tokens} tokens")
    loads = {
        "token ids that repeat": repeated_tokens(),
        "JSON to quote": quoted_persons(tokenizer),
        "passages to quote": prompts_of("quoting", tokenizer, 8),
        "questions": prompts_of("ordinary", tokenizer, 8),
    }
    for name, prompts in loads.items():
        without, _ = greedy_texts(backend, prompts, args.tokens, 0)
        guessed, accepted = greedy_texts(backend, prompts, args.tokens, args.drafts)
        alone = [greedy_texts(backend, [prompt], args.tokens, 0)[0][0] for prompt in prompts]
        count = sum(one != other for one, other in zip(without, guessed, strict=True))
        by_company = sum(one != other for one, other in zip(without, alone, strict=True))
        print(
            f"{name}: {count} of {len(prompts)} texts differ with guesses, {accepted} guesses accepted; "
            f"{by_company} differ without guesses when each is alone",
            flush=True,
        )
    backend.close()


def greedy_texts(
    backend: LlamaCppBackend, prompts: list[list[int]], num_tokens: int, num_drafts: int
) -> tuple[list[list[int]], int]:
    """Returns the tokens for each prompt, eight at a time, and how many guesses were accepted."""
    core = make_core(backend, prompts, num_tokens, num_drafts)
    texts: list[list[int]] = [[] for _ in prompts]
    while core.has_work:
        for delta in core.step(time.monotonic()):
            texts[int(delta.request_id)] += delta.token_ids
    return texts, core.statistics().num_accepted_tokens


def batches_of(args: argparse.Namespace) -> list[int]:
    return [int(part) for part in args.batches.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--drafts", type=int, default=5)
    parser.add_argument("--threads", type=int, default=usable_processors())
    parser.add_argument("--repeatable", action="store_true")
    parser.add_argument("--cost-of-repeatable", action="store_true")
    parser.add_argument("--same-text", action="store_true")
    parser.add_argument("--model", default=None)
    args = parser.parse_args()
    path = args.model or bundled_model()
    tokenizer = GgufTokenizer(path)
    if args.cost_of_repeatable:
        compare_repeatable(path, tokenizer, args)
    elif args.same_text:
        compare_text(path, tokenizer, args)
    else:
        compare_drafts(path, tokenizer, args)


if __name__ == "__main__":
    main()
