"""RunPlan: what a run will ask of a server at most, told before it starts. Pure."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.case import Case
from tidegate.conformance.probing.probe_table import PROBES

UNSAID_OUTPUT_TOKENS = 64
"""Counted where a request names no budget, or where it is made from an earlier answer."""
BYTES_PER_TOKEN = 4
NUM_FIRST_QUESTIONS = 2


@dataclass(frozen=True, slots=True)
class RunPlan:
    """`num_requests`: at most, probes and further tries included. Tokens: at most, roughly; most requests end earlier,
    and many are refused before any work.
    """

    num_cases: int
    num_requests: int
    num_output_tokens: int
    num_prompt_tokens: int

    def describe(self) -> str:
        """Returns the announcement."""
        return (
            f"{self.num_cases} cases; at most {self.num_requests:,} requests, {self.num_output_tokens:,} tokens of "
            f"output and about {self.num_prompt_tokens:,} of prompts"
        )


def plan_run(cases: Iterable[Case]) -> RunPlan:
    """Returns what these cases may come to."""
    cases = tuple(cases)
    probes = [ask for probe in PROBES for ask in probe.asks]
    num_requests = NUM_FIRST_QUESTIONS + len(probes)
    num_output = sum(_output_tokens(ask) for ask in probes)
    num_prompt = sum(_prompt_tokens(ask) for ask in probes)
    for case in cases:
        num_runs = case.repeats + case.tries - 1
        for ask in case.asks:
            num_sent = num_runs * ask.copies
            num_requests += num_sent * _num_polls(ask)
            num_output += num_sent * _output_tokens(ask)
            num_prompt += num_sent * _prompt_tokens(ask)
    return RunPlan(len(cases), num_requests, num_output, num_prompt)


def _num_polls(ask: Ask) -> int:
    return 1 if ask.until is None else 2 + math.ceil(ask.until.within_s / max(ask.until.every_s, 0.01))


def _generates(ask: Ask) -> bool:
    return ask.method == "POST" and ask.place is Place.API and isinstance(ask.body, dict)


def _output_tokens(ask: Ask) -> int:
    if not _generates(ask) or not isinstance(ask.path, str) or not ask.path.rstrip("/").endswith("completions"):
        return 0
    budget = ask.body.get("max_completion_tokens", ask.body.get("max_tokens", UNSAID_OUTPUT_TOKENS))
    number = ask.body.get("n", 1)
    return _count(budget, UNSAID_OUTPUT_TOKENS) * _count(number, 1)


def _count(value: Any, otherwise: int) -> int:
    """Returns the value where it is a sensible count; a hostile one is refused and costs nothing more."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4096
    return value if is_count else otherwise


def _prompt_tokens(ask: Ask) -> int:
    if not _generates(ask):
        return 0
    return math.ceil(len(json.dumps(ask.body, default=str)) / BYTES_PER_TOKEN)
