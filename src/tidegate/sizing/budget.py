"""The whole of what a model will take: its weights, and a cache to generate in, room to read in, or both. Pure.

Decides whether a model that generates also reads: `embeddings` on, off, or where there is room.
"""

from dataclasses import dataclass

from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import MemoryPlan, ModelFacts, mib, plan_memory
from tidegate.sizing.pooling_plan import PoolingFacts, PoolingPlan, plan_pooling
from tidegate.sizing.start_error import StartError


@dataclass(frozen=True, slots=True)
class Budget:
    """`memory` is None for a model that only reads; `pooling` where nothing is read, and `lacking` says why if `auto`
    found no room.
    """

    facts: ModelFacts
    memory: MemoryPlan | None
    pooling: PoolingPlan | None
    lacking: str | None = None

    @property
    def total_bytes(self) -> int:
        if self.memory is not None:
            return self.memory.total_bytes
        return self.facts.weights_bytes + (self.pooling.total_bytes if self.pooling is not None else 0)

    def describe(self) -> str:
        """Returns the sums in a few lines."""
        if self.memory is not None:
            return self.memory.describe()
        room = "unknown" if self.facts.available_bytes is None else mib(self.facts.available_bytes)
        sums = (
            f"weights         {mib(self.facts.weights_bytes)}",
            *([self.pooling.describe()] if self.pooling is not None else ()),
            f"total           {mib(self.total_bytes)} of {room} free",
        )
        return "\n".join(sums)


def plan_budget(facts: ModelFacts, reading: PoolingFacts, options: LlamaCppOptions) -> Budget:
    """Raises StartError, with the sums, when what was asked for does not fit or cannot be."""
    if not reading.has_cache:
        return _to_read(facts, plan_pooling(facts, reading, options))
    if options.embeddings == "off":
        return Budget(facts, plan_memory(facts, options), None)
    pooling = plan_pooling(facts, reading, options)
    try:
        return Budget(facts, plan_memory(facts, options, reserved_bytes=pooling.total_bytes), pooling)
    except StartError as error:
        if options.embeddings == "on":
            raise
        return Budget(facts, plan_memory(facts, options), None, str(error))


def _to_read(facts: ModelFacts, pooling: PoolingPlan) -> Budget:
    need = facts.weights_bytes + pooling.total_bytes
    if facts.available_bytes is not None and need > facts.available_bytes:
        raise StartError(
            f"{facts.name} needs {mib(facts.weights_bytes)} for weights and {mib(pooling.total_bytes)} for passes of "
            f"{pooling.pass_tokens} tokens, but {mib(facts.available_bytes)} are free: lower max_model_len, or take a "
            "smaller model"
        )
    return Budget(facts, None, pooling)
