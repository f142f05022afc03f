"""A `GrammarDesk` without threads: grammars compile when the test says so."""

from tidegate.core.grammar_desk import GrammarCounts, GrammarOrder
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.grammar.matcher import GrammarCompiler, TokenTable
from tidegate.inference.grammar_spec import GrammarSpec


class ManualDesk:
    """Compiles at once, or with `is_slow` at the next `deliver`. `orders` keeps all of them, the oldest first."""

    def __init__(self, compiler: GrammarCompiler, *, is_slow: bool = False) -> None:
        self._compiler = compiler
        self._is_slow = is_slow
        self.orders: list[tuple[GrammarSpec, GrammarOrder]] = []
        self._num_delivered = 0

    @property
    def identity(self) -> str:
        return self._compiler.identity

    def order(self, spec: GrammarSpec) -> GrammarOrder:
        order = GrammarOrder()
        self.orders.append((spec, order))
        if not self._is_slow:
            self.deliver()
        return order

    def deliver(self, num_orders: int | None = None) -> None:
        """Compiles the next `num_orders` of those that wait, or all."""
        waiting = self.orders[self._num_delivered :][:num_orders]
        for spec, order in waiting:
            order.outcome = self._compiler.compile(spec)
        self._num_delivered += len(waiting)

    def counts(self) -> GrammarCounts:
        return GrammarCounts(num_compiles=self._num_delivered)


def make_sampler(compiler: GrammarCompiler, table: TokenTable, max_sequences: int) -> tuple[SamplerChain, GrammarRows]:
    """Returns a sampler that masks with this compiler, and its rows; no drafts."""
    shape = GrammarShape(max_sequences, 0, len(table.tokens), table.eos_ids)
    rows = GrammarRows(compiler, shape)
    return SamplerChain(len(table.tokens), table.eos_ids, rows), rows
