"""What grammars cost, backends side by side: compile times, mask times, memory, for a sample of schemas.

python bench/grammar_costs.py --bench sample.jsonl [--backend llguidance --backend xgrammar]

All times are CPU times of the process, with the bundled model's 49,152 tokens; wall times stand beside some. Masks are
filled in front of each token of every valid instance, cut into the longest tokens, and once more at its end. Memory is
what a process of its own grows by while it holds all grammars of the sample. What is known so far is printed to
standard error every 100 schemas.
"""

import argparse
import gc
import json
import multiprocessing
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import harness_path  # noqa: F401
from grammar_vocabulary import longest_match, model_tokenizer, token_table
from harness.schema_judge import byte_compiler, spelling
from tidegate.grammar.mask_buffer import MaskWords, make_mask_words
from tidegate.grammar.matcher import CompiledGrammar, GrammarCompiler, GrammarMatcher, MaskRow, TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.registry import DEFAULT_BACKEND, find_backend
from tidegate.inference.grammar_spec import JsonSchemaSpec


@dataclass
class Costs:
    backend: str
    compile_ms: list[float] = field(default_factory=list)
    compile_wall_ms: list[float] = field(default_factory=list)
    refusal_ms: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)
    mask_wall_us: list[float] = field(default_factory=list)
    accept_us: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    instances: int = 0
    slowest: tuple[float, str] = (0.0, "")
    mean_bytes: float = 0.0
    told_bytes: float = 0.0
    fit: tuple[float, float] = (0.0, 0.0)


def make_compiler(backend: str, table: TokenTable) -> GrammarCompiler:
    make = find_backend(backend)
    if make is None:
        raise SystemExit("a backend is needed")
    return make(table)


def measure_times(costs: Costs, rows: list[dict[str, Any]], table: TokenTable) -> None:
    compiler = make_compiler(costs.backend, table)
    words = make_mask_words(1, 0, len(table.tokens))
    compiler.register(words)
    bytewise, _ = byte_compiler(costs.backend)
    for number, row in enumerate(rows):
        if number % 100 == 99:
            print(f"  {costs.backend}, {number + 1} of {len(rows)}: {so_far(costs)}", file=sys.stderr, flush=True)
        spec = JsonSchemaSpec(json.dumps(row["schema"]).encode())
        began, began_wall = time.process_time(), time.perf_counter()
        grammar = compiler.compile(spec)
        elapsed_ms, wall_ms = 1000 * (time.process_time() - began), 1000 * (time.perf_counter() - began_wall)
        if isinstance(grammar, GrammarRefusal):
            costs.refusal_ms.append(elapsed_ms)
            continue
        costs.compile_ms.append(elapsed_ms)
        costs.compile_wall_ms.append(wall_ms)
        costs.slowest = max(costs.slowest, (elapsed_ms, row["id"]))
        by_byte = bytewise.compile(spec)
        if isinstance(by_byte, GrammarRefusal):
            continue
        for text in spellings(by_byte, row):
            replay(costs, compiler, words, grammar.make_matcher(), longest_match(table, text), row["id"])


def so_far(costs: Costs) -> str:
    compiled, masks = quantiles(costs.compile_ms), quantiles(costs.mask_us)
    return f"{len(costs.compile_ms)} enforced, compile {compiled} ms, masks {masks} us (p50 / p99 / max)"


def spellings(by_byte: CompiledGrammar, row: dict[str, Any]) -> list[bytes]:
    found = [spelling(by_byte, test["data"], row["schema"]) for test in row["tests"] if test["valid"]]
    return [text for text in found if text is not None]


def replay(
    costs: Costs, compiler: GrammarCompiler, words: MaskWords, machine: GrammarMatcher, ids: Any, name: str
) -> None:
    costs.instances += 1
    for number, token_id in enumerate([*ids, None]):
        began, began_wall = time.process_time(), time.perf_counter()
        compiler.fill([MaskRow(machine, 0)])
        filled, filled_wall = time.process_time(), time.perf_counter()
        (costs.mask_us if number else costs.first_ms).append((filled - began) * (1e6 if number else 1e3))
        if number:
            costs.mask_wall_us.append(1e6 * (filled_wall - began_wall))
        if token_id is None:
            return
        if not words[0][token_id >> 5] >> np.uint32(token_id & 31) & np.uint32(1) or not machine.accept([token_id]):
            costs.lost.append(name)
            return
        costs.accept_us.append(1e6 * (time.process_time() - filled))


def measure_memory(backend: str, rows: list[dict[str, Any]]) -> tuple[float, float, tuple[float, float]]:
    """Returns bytes per grammar, what `num_bytes` says, and the line fitted over sizes of schemas."""
    compiler = make_compiler(backend, token_table(model_tokenizer()))
    process = psutil.Process()
    specs = sorted((JsonSchemaSpec(json.dumps(row["schema"]).encode()) for row in rows), key=lambda s: len(s.schema))
    held: list[Any] = [[compiler.compile(spec) for spec in specs[:200]]]
    points: list[tuple[float, float, int]] = []
    told = 0
    for start in range(0, len(specs), 100):
        group = specs[start : start + 100]
        gc.collect()
        base = process.memory_info().rss
        kept = [(g, s) for s in group if not isinstance(g := compiler.compile(s), GrammarRefusal)]
        grown = process.memory_info().rss - base
        held.append(kept)
        if kept:
            points.append((sum(len(s.schema) for _, s in kept) / len(kept), grown / len(kept), len(kept)))
            told += sum(g.num_bytes for g, _ in kept)
    count = sum(n for _, _, n in points)
    sizes, grown_each, weights = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    slope, base_bytes = np.polyfit(sizes, grown_each, 1, w=np.sqrt(weights))
    for size, each, _ in points:
        print(f"  {backend}: schemas of {size:.0f} bytes: {each / 1024:.0f} KiB each", file=sys.stderr)
    return float((grown_each * weights).sum() / count), told / count, (float(base_bytes), float(slope))


def _memory_apart(backend: str, rows: list[dict[str, Any]], result: Any) -> None:
    result.put(measure_memory(backend, rows))


def quantiles(values: list[float]) -> str:
    if not values:
        return ""
    p50, p99, largest = (float(np.quantile(values, q)) for q in (0.5, 0.99, 1))
    return f"{p50:.3g} / {p99:.3g} / {largest:.4g}"


def print_table(found: list[Costs]) -> None:
    lines = {
        "schemas enforced": lambda c: str(len(c.compile_ms)),
        "compile, ms: p50 / p99 / max": lambda c: quantiles(c.compile_ms),
        "the same, wall": lambda c: quantiles(c.compile_wall_ms),
        "refusal, ms: p50 / p99 / max": lambda c: quantiles(c.refusal_ms),
        "first mask, ms: p50 / p99 / max": lambda c: quantiles(c.first_ms),
        "further masks, us: mean": lambda c: f"{np.mean(c.mask_us):.1f}",
        "further masks, us: p50 / p99 / max": lambda c: quantiles(c.mask_us),
        "the same, wall: p50 / p99 / max": lambda c: quantiles(c.mask_wall_us),
        "accept a token, us: p50 / p99 / max": lambda c: quantiles(c.accept_us),
        "masks filled": lambda c: str(len(c.mask_us) + len(c.first_ms)),
        "instances replayed / stopped half-way": lambda c: f"{c.instances} / {len(c.lost)}",
        "memory of a compiled grammar, mean KiB": lambda c: f"{c.mean_bytes / 1024:.0f}",
        "and what num_bytes says, mean KiB": lambda c: f"{c.told_bytes / 1024:.0f}",
        "fitted bytes: constant + factor x bytes of schema": lambda c: f"{c.fit[0]:.0f} + {c.fit[1]:.1f} x",
        "slowest compile": lambda c: f"{c.slowest[1]}",
    }
    print("| | " + " | ".join(costs.backend for costs in found) + " |")
    print("|---" * (len(found) + 1) + "|")
    for title, cell in lines.items():
        print(f"| {title} | " + " | ".join(cell(costs) for costs in found) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--backend", action="append")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="every n-th schema of the sample only")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.bench.read_text("utf-8").splitlines()][:: options.every]
    table = token_table(model_tokenizer())
    found = []
    for backend in options.backend or [DEFAULT_BACKEND]:
        costs = Costs(make_compiler(backend, table).identity)
        costs.backend = backend
        measure_times(costs, rows, table)
        if not options.no_memory:
            context = multiprocessing.get_context("spawn")
            result = context.Queue()
            child = context.Process(target=_memory_apart, args=(backend, rows, result))
            child.start()
            costs.mean_bytes, costs.told_bytes, costs.fit = result.get()
            child.join()
        for name in sorted(set(costs.lost)):
            print(f"  {backend}: an instance of {name} was not followed to its end", file=sys.stderr)
        found.append(costs)
    print_table(found)


if __name__ == "__main__":
    main()
