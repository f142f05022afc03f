"""A grammar compiler whose compilations last until they are let go, so that a test decides what happens meanwhile."""

import threading
from collections import Counter
from collections.abc import Sequence

from tidegate.grammar.mask_buffer import MaskWords
from tidegate.grammar.matcher import GrammarMatcher, MaskRow
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import GrammarSpec, RegexSpec

QUICK, REFUSED, BROKEN = "quick", "refused", "broken"
"""Patterns: compiles at once; is refused at once; makes the compiler raise. All others wait for `release`."""


class _Grammar:
    num_bytes = 100

    def make_matcher(self) -> GrammarMatcher:
        raise AssertionError("the server makes no machine")


class SlowCompiler:
    """Counts what it began to compile, by pattern."""

    identity = "slow 1"

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self._gates: dict[str, threading.Event] = {}

    def gate(self, pattern: str) -> threading.Event:
        return self._gates.setdefault(pattern, threading.Event())

    def release(self, *patterns: str) -> None:
        for pattern in patterns:
            self.gate(pattern).set()

    def compile(self, spec: GrammarSpec) -> _Grammar | GrammarRefusal:
        pattern = spec.pattern if isinstance(spec, RegexSpec) else QUICK
        self.begun[pattern] += 1
        if pattern.startswith(BROKEN):
            raise MemoryError(pattern)
        if pattern.startswith(REFUSED):
            return GrammarRefusal(RefusalKind.UNSUPPORTED_SCHEMA, "not this one", "")
        if not pattern.startswith(QUICK) and not self.gate(pattern).wait(30):
            raise TimeoutError(pattern)
        return _Grammar()

    def register(self, words: MaskWords) -> None:
        raise AssertionError("the server fills no mask")

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        raise AssertionError("the server fills no mask")
