"""Models that only read: random encoders, made here, through llama.cpp; and the ways in which they cannot be opened."""

from collections.abc import Callable, Iterator
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.backends.llama_cpp.open_model import OpenModel, open_model
from tidegate.core.backend import BackendError, Float32Array
from tidegate.core.plan import StepPlan
from tidegate.core.pooling_backend import PoolingBackend
from tidegate.inference.pooling import PoolingMode, PoolingTask
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.start_error import StartError
from tidegate.testing.bert_gguf import TINY, write_tiny_bert
from tidegate.testing.check_pooling import POOLING_CHECKS

MODELS = {"mean": (), "cls": (), "last": (), "rank": (), "labels": ("no", "maybe", "yes")}
TEXTS = ("hello world", "a", "the quick brown fox jumps over the lazy dog", "hello there")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tiny")
    for name, labels in MODELS.items():
        write_tiny_bert(made / f"{name}.gguf", pooling="rank" if name == "labels" else name, labels=labels)
    return made


def opened(folder: Path, name: str, **options: object) -> OpenModel:
    return open_model(LlamaCppOptions(model_path=str(folder / f"{name}.gguf"), n_threads=1, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=MODELS)
def tiny(request: pytest.FixtureRequest, folder: Path) -> Iterator[OpenModel]:
    model = opened(folder, request.param)
    yield model
    assert model.pooling is not None
    model.pooling.close()
    model.backend.close()
    model.backend.close()


@pytest.mark.parametrize("check", POOLING_CHECKS, ids=lambda check: check.__name__)
def test_an_encoder_is_a_pooling_backend(tiny: OpenModel, check: Callable[[PoolingBackend], None]) -> None:
    assert tiny.pooling is not None
    check(tiny.pooling)


def test_an_encoder_says_that_it_generates_nothing(tiny: OpenModel) -> None:
    caps = tiny.backend.caps
    assert (caps.generates, caps.max_model_len, caps.can_share, caps.can_truncate) == (False, 96, False, False)
    assert caps.num_blocks * caps.block_tokens >= caps.max_sequences * caps.max_model_len
    assert tiny.backend.token_table().tokens[2] == b"[CLS]"
    with pytest.raises(BackendError, match="only reads"):
        tiny.backend.execute(StepPlan())


LABELS = [("mean", ()), ("rank", ("LABEL_0",)), ("labels", ("no", "maybe", "yes"))]


@pytest.mark.parametrize(("name", "labels"), LABELS)
def test_labels_are_those_of_the_file(folder: Path, name: str, labels: tuple[str, ...]) -> None:
    model = opened(folder, name)
    assert model.pooling is not None
    assert model.pooling.caps.info.labels == labels
    model.pooling.close()
    model.backend.close()


def reference(path: Path) -> tuple[list[list[int]], Float32Array]:
    """What the bindings' own high-level class makes of the texts, one by one: token ids and vectors."""
    sizes = {"n_ctx": 96, "n_batch": 96, "n_ubatch": 96, "n_threads": 1, "n_threads_batch": 1}
    llama = llama_cpp.Llama(str(path), embedding=True, verbose=False, **sizes)
    try:
        vectors = [np.array(llama.embed(text), np.float32) for text in TEXTS]
        return [llama.tokenize(text.encode()) for text in TEXTS], np.array(vectors)
    finally:
        llama.close()


@pytest.mark.parametrize("name", MODELS)
def test_vectors_are_those_of_the_bindings_own_class(folder: Path, name: str) -> None:
    token_ids, expected = reference(folder / f"{name}.gguf")
    model = opened(folder, name)
    assert model.pooling is not None
    task = PoolingTask.CLASSIFY if model.pooling.caps.info.labels else PoolingTask.EMBED
    vectors = model.pooling.pool(token_ids, task)
    # The class gives of the outputs of a head as many as a vector has, and ours are the first.
    assert np.allclose(vectors, expected.reshape(len(TEXTS), -1)[:, : vectors.shape[1]], atol=2e-3)
    model.pooling.close()
    model.backend.close()


def test_the_operator_may_pool_otherwise_than_the_file_says(folder: Path) -> None:
    found = {}
    for mode in (PoolingMode.MEAN, PoolingMode.CLS, PoolingMode.LAST):
        model = opened(folder, "rank", pooling=mode.value)
        assert model.pooling is not None
        assert model.pooling.caps.info.mode is mode
        found[mode] = model.pooling.pool([[9, 10, 11], [9]], PoolingTask.EMBED)
        model.pooling.close()
        model.backend.close()
    three, one = zip(*found.values(), strict=True)
    assert all(np.allclose(vector, one[0], atol=1e-4) for vector in one), "of one token all are the same"
    assert not np.allclose(three[0], three[1], atol=1e-2)
    assert not np.allclose(three[1], three[2], atol=1e-2)


REFUSED = [
    ("mean", {"pooling": "rank"}, "no classification head"),
    ("mean", {"max_model_len": 97}, "max_model_len is 97, but mean.gguf reads at most 96"),
    ("mean", {"max_sequences": 0}, "max_sequences is 0"),
    ("mean", {"tensor_split": (1.0,) * 99}, "tensor_split names 99 GPUs, but this llama.cpp uses at most"),
]


@pytest.mark.parametrize(("name", "options", "fault"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_file_cannot_do_keeps_it_from_opening(
    folder: Path, name: str, options: dict[str, object], fault: str
) -> None:
    with pytest.raises(StartError, match=fault):
        opened(folder, name, **options)


def test_a_shorter_longest_prompt_can_be_asked_for(folder: Path) -> None:
    model = opened(folder, "mean", max_model_len=10, max_step_tokens=32)
    assert model.pooling is not None
    assert (model.pooling.caps.info.max_input_tokens, model.pooling.plan.pass_tokens) == (10, 32)
    assert model.pooling.caps.info.dimensions == TINY.width
    model.pooling.close()
    model.backend.close()


def test_an_encoder_is_no_backend_that_generates(folder: Path) -> None:
    with pytest.raises(StartError, match="no cache of keys and values"):
        LlamaCppBackend(LlamaCppOptions(model_path=str(folder / "mean.gguf"), n_threads=1))
