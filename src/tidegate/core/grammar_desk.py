"""The `GrammarDesk` port: where the core orders grammars, which are compiled while its steps go on."""

from dataclasses import dataclass
from typing import Protocol

from tidegate.grammar.compile_cache import CompileOutcome
from tidegate.inference.grammar_spec import GrammarSpec


@dataclass(eq=False, slots=True)
class GrammarOrder:
    """One request's grammar: on its way until `outcome` is there.

    The desk sets `outcome` between two steps, and wakes whoever steps. The core sets `is_wanted` to False when the
    request has ended; what nobody wants need not be compiled.
    """

    outcome: CompileOutcome | None = None
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class GrammarCounts:
    """What grammars have cost since the engine's start. `num_failures` of `num_compiles` were refused.

    `num_hits` were there already, or on their way for somebody else.
    """

    num_compiles: int = 0
    num_hits: int = 0
    num_failures: int = 0
    compile_s: float = 0.0
    num_masks: int = 0
    mask_s: float = 0.0


class GrammarDesk(Protocol):
    """Compiles in the background, each grammar once."""

    @property
    def identity(self) -> str:
        """Who enforces, with its version: `GrammarCompiler.identity`."""
        ...

    def order(self, spec: GrammarSpec) -> GrammarOrder:
        """Returns at once. Never raises for what a spec says: a refusal is an outcome."""
        ...

    def counts(self) -> GrammarCounts: ...
