"""MeteredCompiler: a grammar compiler that counts the masks it writes, and the time that takes."""

from collections.abc import Sequence

from tidegate.clock import Clock
from tidegate.grammar.compile_cache import CompileOutcome
from tidegate.grammar.mask_buffer import MaskWords
from tidegate.grammar.matcher import GrammarCompiler, MaskRow
from tidegate.inference.grammar_spec import GrammarSpec


class MeteredCompiler:
    """Passes everything on to `inner`. `compile` may be called from several threads, the rest from one."""

    def __init__(self, inner: GrammarCompiler, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self.num_masks = 0
        self.mask_s = 0.0

    @property
    def identity(self) -> str:
        return self._inner.identity

    def compile(self, spec: GrammarSpec) -> CompileOutcome:
        return self._inner.compile(spec)

    def register(self, words: MaskWords) -> None:
        self._inner.register(words)

    def fill(self, rows: Sequence[MaskRow]) -> list[int]:
        started_at = self._clock.now()
        legal = self._inner.fill(rows)
        self.mask_s += self._clock.now() - started_at
        self.num_masks += sum(legal) + len(legal)
        return legal
