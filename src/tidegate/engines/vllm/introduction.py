"""A started vLLM is held against what is served, and tried with one token, before it is declared ready.

The trial is also its warm-up: the first request of an engine takes seconds.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from tidegate.engines.remote.ask import EngineUnfit
from tidegate.engines.remote.remote_grammar import TOO_OLD, TRIAL_GRAMMAR
from tidegate.engines.remote.sampling_facts import token_ids_of
from tidegate.engines.remote.served_facts import ServedFacts, fill_blocks
from tidegate.engines.vllm.engine_arguments import MAX_LOGPROBS
from tidegate.engines.vllm.engine_faults import describe
from tidegate.engines.vllm.library import Library, Llm, LlmFacts
from tidegate.engines.vllm.llm_carrier import LlmAbilities, LlmOrder, open_stream
from tidegate.engines.vllm.sampling_fields import VllmLimits, sampling_fields
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

UNSERVED_FIELDS = ("bad_words",)


@dataclass(frozen=True, slots=True)
class Introduced:
    """What a started engine is and can do. `notes` are what an operator should know."""

    model: ModelInfo
    abilities: LlmAbilities
    facts: LlmFacts
    notes: tuple[str, ...] = ()


async def introduce(
    library: Library, llm: Llm, served: ServedFacts, *, weights: str, has_priorities: bool
) -> Introduced:
    """Raises EngineUnfit where the engine cannot be served, what vLLM raises where it died. `weights`: their digest."""
    facts = library.facts(llm)
    length = served.effective_length(facts.max_model_len)
    notes = _compare_tokenizers(library, llm, served)
    limits = VllmLimits(MAX_LOGPROBS, length, served.vocab_size)
    abilities = LlmAbilities(
        served.eos_token_ids, limits, has_priorities, served.grammars, has_tracing=facts.has_tracing
    )
    await _try_one(library, llm, served.last_token_id, abilities, grammar=None)
    if served.grammars is not None:
        try:
            token_id = await _try_one(library, llm, served.last_token_id, abilities, grammar=TRIAL_GRAMMAR)
            if token_id in served.eos_token_ids:
                raise EngineUnfit(TOO_OLD)
        except EngineUnfit as error:
            abilities = replace(abilities, grammars=None)
            notes = (*notes, f"no structured output: {error}")
    return Introduced(_model(served, facts, abilities, length, weights), abilities, facts, notes)


def _compare_tokenizers(library: Library, llm: Llm, served: ServedFacts) -> tuple[str, ...]:
    for text, _ in served.probes:
        theirs = library.tokenize(llm, text)
        if theirs is None:
            return ("vLLM has no tokenizer, so only the size of its vocabulary was compared",)
        served.compare_tokens(text, theirs)
    return ()


async def _try_one(library: Library, llm: Llm, token_id: int, abilities: LlmAbilities, *, grammar: str | None) -> int:
    """Returns the token that was generated. Raises EngineUnfit where none was."""
    request = InferenceRequest(
        "trial",
        token_id.to_bytes(4, "little"),
        SamplingParams(temperature=0.0),
        StopRules(max_tokens=1),
        num_logprobs=MAX_LOGPROBS - 1,
    )
    fields = sampling_fields(request, 0, abilities.eos_token_ids, grammar)
    order = LlmOrder("tidegate-trial", token_ids_of(request), fields, None, 1 if abilities.has_priorities else 0)
    try:
        outputs: list[Any] = [output async for output in open_stream(library, llm, order)]
    except Exception as error:
        if llm.errored:
            raise
        raise EngineUnfit(f"it does not generate: {describe(error)}") from error
    if not outputs or not outputs[-1].outputs[0].token_ids:
        raise EngineUnfit("it does not generate: no token came")
    return int(outputs[-1].outputs[0].token_ids[0])


def _model(served: ServedFacts, facts: LlmFacts, abilities: LlmAbilities, length: int, weights: str) -> ModelInfo:
    parts = (weights, served.model_name or "", served.revision or "")
    return ModelInfo(
        vocab_size=served.vocab_size,
        max_model_len=length,
        eos_token_ids=served.eos_token_ids,
        max_sequences=served.max_sequences,
        num_blocks=facts.num_blocks or fill_blocks(served.max_sequences, length, facts.block_tokens),
        block_tokens=facts.block_tokens,
        weights_digest=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        build=f"vllm {facts.version}",
        grammar_backend="guidance" if abilities.grammars is not None else None,
        has_prefix_cache=facts.has_prefix_cache,
        unserved_fields=UNSERVED_FIELDS,
    )
