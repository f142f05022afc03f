"""How many schemas are enforced, family by family, and whether the machines keep what the schemas say.

python bench/schema_coverage.py --bench sample.jsonl --suite draft2020-12.json [--texts 3] [--backend llguidance]

`sample.jsonl` is jsonschemabench, a schema with its instances a line; `draft2020-12.json` the official suite, path to
groups. "kept" counts instances: valid ones that the machine accepts, invalid ones that it does not. "texts" are written
by the machine at random and checked with a validator. Compile times are CPU times, for a vocabulary of 257 tokens.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np

import harness_path  # noqa: F401
from harness.schema_judge import accepts, byte_compiler, finite_value, random_text
from tidegate.grammar.mask_buffer import MaskWords
from tidegate.grammar.matcher import GrammarCompiler
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.registry import DEFAULT_BACKEND
from tidegate.inference.grammar_spec import JsonSchemaSpec

HARD = ("Synthesized", "Handwritten")
"""Families made to be hard; schemas of the others come from practice."""


@dataclass
class Judge:
    """One backend, on a vocabulary of bytes."""

    compiler: GrammarCompiler
    words: MaskWords
    num_texts: int


@dataclass
class Tally:
    schemas: int = 0
    enforced: int = 0
    valid: int = 0
    valid_kept: int = 0
    invalid: int = 0
    invalid_kept: int = 0
    texts: int = 0
    texts_kept: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def row(self, name: str) -> str:
        share = 100 * self.enforced / max(1, self.schemas)
        return (
            f"| {name} | {self.schemas} | {self.enforced} | {share:.1f} % | {self.valid_kept} of {self.valid} "
            f"| {self.invalid_kept} of {self.invalid} | {self.texts_kept} of {self.texts} |"
        )


def read_rows(bench: Path | None, suite: Path | None) -> Iterator[tuple[str, Any, list[Any]]]:
    for line in bench.read_text("utf-8").splitlines() if bench else ():
        row = json.loads(line)
        yield row["family"], row["schema"], row["tests"]
    for file, groups in json.loads(suite.read_text("utf-8")).items() if suite else ():
        name = "suite, formats" if file.startswith("optional/format/") or file == "format.json" else "suite"
        for group in groups:
            yield name, group["schema"], group["tests"]


def judge_schema(judge: Judge, tally: Tally, schema: Any, tests: list[Any]) -> float:
    """Counts one schema; returns the seconds of its compile."""
    tally.schemas += 1
    source = JsonSchemaSpec(json.dumps(schema).encode())
    began = time.process_time()
    grammar = judge.compiler.compile(source)
    elapsed_s = time.process_time() - began
    if isinstance(grammar, GrammarRefusal):
        reason = grammar.message.partition(":")[0]
        tally.reasons[reason] = tally.reasons.get(reason, 0) + 1
        return elapsed_s
    tally.enforced += 1
    for test in tests:
        is_right = accepts(grammar, test["data"], schema) is test["valid"]
        tally.valid += test["valid"]
        tally.valid_kept += test["valid"] and is_right
        tally.invalid += not test["valid"]
        tally.invalid_kept += not test["valid"] and is_right
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for seed in range(judge.num_texts):
        text = random_text(judge.compiler, judge.words, grammar, seed)
        value = None if text is None else finite_value(text)
        if text is not None and (value is not None or text == "null"):
            tally.texts += 1
            tally.texts_kept += validator.is_valid(value)
    return elapsed_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--texts", type=int, default=3)
    parser.add_argument("--backend", default=DEFAULT_BACKEND)
    options = parser.parse_args()
    judge = Judge(*byte_compiler(options.backend), options.texts)
    tallies: dict[str, Tally] = {}
    times = []
    for family, schema, tests in read_rows(options.bench, options.suite):
        times.append(judge_schema(judge, tallies.setdefault(family, Tally()), schema, tests))
    print("| family | schemas | enforced | | valid kept | invalid kept | texts kept |")
    print("|---|---|---|---|---|---|---|")
    for family, tally in tallies.items():
        print(tally.row(family))
    practice = [tally for family, tally in tallies.items() if family not in HARD and not family.startswith("suite")]
    enforced, schemas = sum(tally.enforced for tally in practice), sum(tally.schemas for tally in practice)
    print(f"\nfrom practice: {enforced} of {schemas} enforced, {100 * enforced / max(1, schemas):.1f} %")
    p50, p99, largest = (1000 * float(np.quantile(times, q)) for q in (0.5, 0.99, 1))
    print(f"compile: p50 {p50:.1f} ms, p99 {p99:.1f} ms, largest {largest:.0f} ms")
    totals: dict[str, int] = {}
    for tally in tallies.values():
        for reason, count in tally.reasons.items():
            totals[reason] = totals.get(reason, 0) + count
    for reason, count in sorted(totals.items(), key=lambda item: -item[1])[:25]:
        print(f"  refused {count}: {reason}")


if __name__ == "__main__":
    main()
