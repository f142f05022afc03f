"""The shape of the context that prompts are only read in, and the budget it shares with the cache."""

from typing import Any

import pytest

from tidegate.inference.pooling import PoolingMode
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import ModelFacts, plan_memory
from tidegate.sizing.pooling_plan import PoolingFacts, plan_pooling
from tidegate.sizing.start_error import StartError

MIB = 1 << 20


def facts(**changes: Any) -> ModelFacts:
    base: dict[str, Any] = {
        "name": "m.gguf",
        "weights_bytes": 100 * MIB,
        "n_ctx_train": 8192,
        "kv_width_k": 30 * 192,
        "kv_width_v": 30 * 192,
        "vocab_size": 49152,
        "can_truncate": True,
        "available_bytes": 16 << 30,
    }
    return ModelFacts(**(base | changes))


def reading(**changes: Any) -> PoolingFacts:
    base: dict[str, Any] = {
        "has_cache": True,
        "looks_ahead": False,
        "mode": None,
        "labels": ("LABEL_0",),
        "dimensions": 576,
        "num_heads": 9,
        "inner_width": 1536,
    }
    return PoolingFacts(**(base | changes))


def options(**changes: Any) -> LlamaCppOptions:
    return LlamaCppOptions(model_path="m.gguf", **changes)


ENCODER = reading(has_cache=False, looks_ahead=True, mode=PoolingMode.CLS)
RANKER = reading(mode=PoolingMode.RANK, num_head_outputs=1)
# facts of reading, options; then: mode, in slices, tokens of a pass, cache, longest prompt
SHAPES = [
    (reading(), {"max_step_tokens": 128}, (PoolingMode.MEAN, True, 128, 2048, 2048)),
    (reading(mode=PoolingMode.LAST), {}, (PoolingMode.LAST, True, 512, 2048, 2048)),
    (reading(), {"pooling": "cls", "embedding_tokens": 100}, (PoolingMode.CLS, True, 512, 512, 100)),
    (reading(), {"max_model_len": 300, "max_step_tokens": 64}, (PoolingMode.MEAN, True, 64, 512, 300)),
    (reading(looks_ahead=True), {"max_step_tokens": 64}, (PoolingMode.MEAN, False, 2048, 2048, 2048)),
    (RANKER, {"embedding_tokens": 700, "max_step_tokens": 64}, (PoolingMode.RANK, False, 700, 768, 700)),
    (ENCODER, {"max_step_tokens": 64}, (PoolingMode.CLS, False, 2048, 0, 2048)),
    (ENCODER, {"max_model_len": 8192}, (PoolingMode.CLS, False, 8192, 0, 8192)),
    (ENCODER, {"embedding_tokens": 8}, (PoolingMode.CLS, False, 2048, 0, 2048)),
]


@pytest.mark.parametrize(("said", "asked", "expected"), SHAPES, ids=range(len(SHAPES)))
def test_the_shape_follows_from_the_file_and_the_options(
    said: PoolingFacts, asked: dict[str, Any], expected: tuple[PoolingMode, bool, int, int, int]
) -> None:
    plan = plan_pooling(facts(), said, options(**asked))
    assert (plan.info.mode, plan.in_slices, plan.pass_tokens, plan.n_ctx, plan.info.max_input_tokens) == expected
    assert plan.info.labels == (said.labels if plan.info.mode is PoolingMode.RANK else ())
    assert plan.total_bytes == plan.kv_bytes + plan.buffer_bytes > 0
    assert "embeddings" in plan.describe()


def test_length_costs_a_model_that_generates_cache_alone() -> None:
    short = plan_pooling(facts(), reading(), options(embedding_tokens=1024))
    long = plan_pooling(facts(), reading(), options(embedding_tokens=4096))
    assert long.buffer_bytes == short.buffer_bytes
    assert long.kv_bytes - short.kv_bytes == 3072 * 30 * 2 * 192 * 2


def test_state_that_is_a_running_summary_is_read_one_prompt_at_a_time() -> None:
    assert plan_pooling(facts(can_truncate=False), reading(), options()).max_batch_inputs == 1
    assert plan_pooling(facts(), reading(), options()).max_batch_inputs == 32


REFUSED = [
    (reading(), {"embedding_tokens": 8193}, "embedding_tokens is 8193, but m.gguf reads at most 8192"),
    (ENCODER, {"max_model_len": 8193}, "max_model_len is 8193"),
    (reading(), {"pooling": "rank"}, "no classification head"),
]


@pytest.mark.parametrize(("said", "asked", "fault"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_refused(said: PoolingFacts, asked: dict[str, Any], fault: str) -> None:
    with pytest.raises(StartError, match=fault):
        plan_pooling(facts(), said, options(**asked))


def test_the_cache_leaves_room_for_reading() -> None:
    alone = plan_memory(facts(available_bytes=600 * MIB), options())
    beside = plan_memory(facts(available_bytes=600 * MIB), options(), reserved_bytes=200 * MIB)
    assert beside.n_ctx < alone.n_ctx
    assert beside.total_bytes <= 600 * MIB
    assert "embeddings      200 MiB" in beside.describe()
    assert "embeddings" not in alone.describe()


def test_what_does_not_fit_is_refused_with_the_sums() -> None:
    with pytest.raises(StartError) as caught:
        plan_memory(
            facts(available_bytes=200 * MIB), options(max_model_len=512, max_sequences=1), reserved_bytes=99 * MIB
        )
    for part in ("100 MiB for weights", "99 MiB for embeddings", "200 MiB are free", "set embeddings to off"):
        assert part in str(caught.value)
