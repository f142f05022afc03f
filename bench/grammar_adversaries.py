"""What grammars that were written to hurt cost: to compile, and to follow, each in a process of its own.

python bench/grammar_adversaries.py [--backend llguidance] [--only WORDS] [--tokens 200]

`peak` is how far the process grew, over one with the vocabulary alone. `worst step` is one token: a mask of all 49,152
tokens, and moving on by one. A case that takes longer than --patience seconds in all is ended and called a hang.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from typing import Any

import harness_path  # noqa: F401
from grammar_vocabulary import longest_match, model_tokenizer, token_table
from harness.hostile_grammars import Hostile, hostile_grammars
from tidegate.grammar.mask_buffer import MaskWords, allowed_ids, make_mask_words
from tidegate.grammar.matcher import CompiledGrammar, GrammarCompiler, GrammarMatcher, MaskRow, TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.registry import DEFAULT_BACKEND, find_backend

_MEMORY_LIMIT = 8 << 30
_SEEDS = 2


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Follower:
    """Writes texts into machines of one grammar; keeps the slowest step."""

    def __init__(self, compiler: GrammarCompiler, table: TokenTable, max_tokens: int) -> None:
        self._compiler = compiler
        self._table = table
        self._max_tokens = max_tokens
        self._words: MaskWords = make_mask_words(1, 0, len(table.tokens))
        compiler.register(self._words)
        self.worst_s = 0.0
        self.total_s = 0.0
        self.num_steps = 0
        self.errors: set[str] = set()

    def _step(self, machine: GrammarMatcher, token_id: int | None) -> bool:
        began = time.thread_time()
        moved = token_id is None or machine.accept([token_id])
        self._compiler.fill([MaskRow(machine, 0)])
        elapsed_s = time.thread_time() - began
        self.worst_s = max(self.worst_s, elapsed_s)
        self.total_s += elapsed_s
        self.num_steps += 1
        if machine.error is not None:
            self.errors.add(machine.error)
        return moved

    def follow(self, grammar: CompiledGrammar, text: str) -> None:
        machine = grammar.make_matcher()
        self._step(machine, None)
        for token_id in longest_match(self._table, text.encode())[: self._max_tokens]:
            if machine.legal_prefix([token_id]) == 0 or not self._step(machine, token_id):
                return

    def wander(self, grammar: CompiledGrammar, seed: int) -> None:
        draw = random.Random(seed)
        machine = grammar.make_matcher()
        self._step(machine, None)
        for _ in range(self._max_tokens):
            ids = [i for i in allowed_ids(self._words[0], len(self._table.tokens)) if i not in self._table.special_ids]
            if not ids or not self._step(machine, draw.choice(ids)):
                return


def run_one(backend: str, case: Hostile, max_tokens: int) -> dict[str, Any]:
    table = token_table(model_tokenizer())
    make = find_backend(backend)
    if make is None:
        raise SystemExit("a backend is needed")
    compiler = make(table)
    follower = Follower(compiler, table, max_tokens)
    base = peak_mib()
    began = time.thread_time()
    grammar = compiler.compile(case.spec)
    found: dict[str, Any] = {"compile_s": time.thread_time() - began, "compile_mib": peak_mib() - base}
    if isinstance(grammar, GrammarRefusal):
        return found | {"result": f"{grammar.kind.value}: {grammar.message[:60]}", "peak_mib": peak_mib() - base}
    for text in case.texts:
        follower.follow(grammar, text)
    for seed in range(_SEEDS):
        follower.wander(grammar, seed)
    result = "compiled" + (f", stopped: {min(follower.errors)[:50]}" if follower.errors else "")
    return found | {
        "result": result,
        "worst_ms": 1000 * follower.worst_s,
        "mean_ms": 1000 * follower.total_s / follower.num_steps,
        "peak_mib": peak_mib() - base,
    }


def run_apart(backend: str, name: str, max_tokens: int, patience_s: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--backend", backend, "--one", name, "--tokens", str(max_tokens)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience_s, check=False)
    except subprocess.TimeoutExpired:
        return {"result": f"HANG after {patience_s:.0f} s"}
    if done.returncode != 0:
        return {"result": f"DIED with {done.returncode}: {done.stderr.decode(errors='replace').strip()[-120:]}"}
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default=DEFAULT_BACKEND)
    parser.add_argument("--only", default="")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one is not None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
        print(json.dumps(run_one(options.backend, dict(hostile_grammars())[options.one], options.tokens)))
        return
    print("| case | compile s | MiB | worst step ms | mean ms | peak MiB | result |")
    print("|---|---|---|---|---|---|---|")
    for name, _ in hostile_grammars():
        if options.only in name:
            found = run_apart(options.backend, name, options.tokens, options.patience)
            cells = [
                f"{found[key]:.{digits}f}" if key in found else ""
                for key, digits in (
                    ("compile_s", 3),
                    ("compile_mib", 0),
                    ("worst_ms", 1),
                    ("mean_ms", 2),
                    ("peak_mib", 0),
                )
            ]
            print(f"| {name} | {' | '.join(cells)} | {found['result']} |", flush=True)


if __name__ == "__main__":
    main()
