"""A frozen snapshot of the engine's accounts, carried with every step."""

import msgspec

from tidegate.inference.model_info import ModelInfo


class EngineGauges(msgspec.Struct, frozen=True, array_like=True):
    """Counts at the end of a step; counters run since the engine process started.

    `num_held` have a reader that is behind, or wait for their grammar to compile. `prefill_steps_s` and the four after
    it say where the time of all steps went: seconds in `num_prefill_steps` steps that carried prompt tokens
    (`num_mixed_steps` of them decode rows as well), `decode_steps_s` in the others.
    """

    num_waiting: int = 0
    num_running: int = 0
    num_held: int = 0
    blocks_free: int = 0
    blocks_cached: int = 0
    blocks_used: int = 0
    num_steps: int = 0
    num_preemptions: int = 0
    num_prefill_tokens: int = 0
    num_decode_tokens: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    step_s: float = 0.0
    num_step_tokens: int = 0
    prefill_steps_s: float = 0.0
    num_prefill_steps: int = 0
    num_mixed_steps: int = 0
    decode_steps_s: float = 0.0
    num_decode_steps: int = 0
    num_output_tokens: int = 0
    """Every token generated, the one that ends a sequence included."""
    num_constrained: int = 0
    """Sequences that have not ended and have a grammar."""
    num_grammar_compiles: int = 0
    num_grammar_hits: int = 0
    """Grammars that were compiled already, or on their way."""
    num_grammar_failures: int = 0
    grammar_compile_s: float = 0.0
    num_grammar_masks: int = 0
    """Masks written: one for each token of a constrained sequence, drafts included."""
    grammar_mask_s: float = 0.0
    num_drafts: int = 0
    """Rows that were fed with draft tokens."""
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    """Draft tokens that were what the sequence then chose."""
    num_pooled: int = 0
    """Prompts that were only read; those that wait for it are among `num_waiting`."""
    num_pooled_tokens: int = 0
    num_pooled_batches: int = 0
    pooled_s: float = 0.0
    """Seconds in those batches. They are no steps."""


class EngineStatus(msgspec.Struct, frozen=True):
    """What the server half knows of its engine. `model` and `gauges` are the last ones heard."""

    is_ready: bool
    epoch: int
    num_restarts: int
    num_stale_outputs: int
    gauges: EngineGauges
    model: ModelInfo | None
    process_id: int | None = None
    condition: str | None = None
    """What is being done about an engine that is not ready, for operators; None where nobody here knows."""
    retry_after_s: int = 1
    """When a caller may try again, while the engine is not ready."""
    num_stalls: int = 0
    """Engine processes that were killed because they hung."""
    num_poison_suspects: int = 0
    """Requests that the engine died with, and that have not completed since."""
    num_poison_refusals: int = 0
    """Requests refused because the engine died with them in it again and again."""
    num_engines: int = 1
    """Engines behind this port that get requests now; at least 1. `model` then has the rows and blocks of all."""
