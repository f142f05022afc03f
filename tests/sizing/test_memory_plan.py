from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.memory_plan import ModelFacts, plan_memory
from tidegate.sizing.start_error import StartError

MIB, GIB = 1 << 20, 1 << 30


def facts(**changes: Any) -> ModelFacts:
    """A small model: 30 layers, 192 wide keys and values, so 23,040 bytes of cache a token at f16."""
    values: dict[str, Any] = {
        "name": "small.gguf",
        "weights_bytes": 100 * MIB,
        "n_ctx_train": 8192,
        "kv_width_k": 30 * 192,
        "kv_width_v": 30 * 192,
        "vocab_size": 49152,
        "can_truncate": True,
        "available_bytes": 16 * GIB,
    }
    return ModelFacts(**{**values, **changes})


def options(**changes: Any) -> LlamaCppOptions:
    return LlamaCppOptions(model_path="small.gguf", **changes)


def test_with_room_every_sequence_has_a_buffer_of_its_own() -> None:
    plan = plan_memory(facts(), options(max_sequences=8))
    assert (plan.layout, plan.max_model_len, plan.n_ctx) == ("per_sequence", 4096, 8 * 4096)
    assert plan.kv_bytes_per_token == 23040
    assert plan.num_blocks == 8 * 4096 // 16
    assert plan.kv_bytes == 8 * 4096 * 23040
    assert plan.total_bytes == plan.weights_bytes + plan.kv_bytes + plan.logits_bytes


def test_without_that_room_the_cache_is_one_pool_as_large_as_memory_allows() -> None:
    plan = plan_memory(facts(available_bytes=2 * GIB), options(max_sequences=32))
    assert (plan.layout, plan.max_model_len) == ("unified", 4096)
    assert 4096 <= plan.n_ctx < 32 * 4096
    assert plan.kv_bytes < 0.6 * 2 * GIB
    assert plan.num_blocks * 16 == plan.n_ctx


def test_a_long_context_is_cut_to_what_fits_when_nobody_asked_for_it() -> None:
    plan = plan_memory(facts(available_bytes=256 * MIB), options(max_sequences=4))
    assert plan.max_model_len < 4096
    assert plan.max_model_len % 256 == 0


def test_the_context_is_no_longer_than_the_model_was_trained_for() -> None:
    assert plan_memory(facts(n_ctx_train=2048), options()).max_model_len == 2048


def test_an_asked_length_is_kept_to_the_token_and_its_buffer_is_rounded_up() -> None:
    plan = plan_memory(facts(), options(max_model_len=1000, max_sequences=3))
    assert (plan.max_model_len, plan.n_ctx) == (1000, 3 * 1024)


def test_a_given_size_of_the_cache_decides_the_layout() -> None:
    assert plan_memory(facts(), options(max_model_len=1024, max_sequences=4, kv_tokens=4096)).layout == "per_sequence"
    plan = plan_memory(facts(), options(max_model_len=1024, max_sequences=4, kv_tokens=4095))
    assert (plan.layout, plan.n_ctx) == ("unified", 4096)


def test_unknown_memory_gets_the_default_cache() -> None:
    assert plan_memory(facts(available_bytes=None), options(max_sequences=4)).n_ctx == 4 * 4096


def test_quantised_keys_and_values_take_less() -> None:
    plan = plan_memory(facts(), options(kv_type_k="q8_0", kv_type_v="q8_0"))
    assert plan.kv_bytes_per_token == round(23040 * 17 / 32)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"max_sequences": 0}, "max_sequences is 0; it must be between 1 and 256"),
    ({}, {"max_sequences": 257}, "max_sequences is 257"),
    ({}, {"block_tokens": 0}, "block_tokens is 0"),
    ({}, {"max_step_tokens": 31}, r"max_step_tokens \(31\) must be at least max_sequences \(32\)"),
    ({}, {"n_gpu_layers": -1}, "n_gpu_layers is -1"),
    ({}, {"tensor_split": (0.5, -0.5)}, "tensor_split must hold shares from 0 up"),
    ({}, {"tensor_split": (0.0, 0.0)}, "tensor_split must hold"),
    ({}, {"tensor_split": (float("nan"), 1.0)}, "tensor_split must hold"),
    ({}, {"tensor_split": (float("inf"),)}, "tensor_split must hold"),
    ({}, {"kv_type_v": "q8_0", "flash_attn": "off"}, "kv_type_v q8_0 needs flash attention"),
    (
        {},
        {"kv_layout": "per_sequence", "max_model_len": 1024, "kv_tokens": 1024},
        "kv_tokens is 1024.*32 x 1024 = 32768",
    ),
    ({}, {"max_model_len": 4096, "kv_tokens": 1024}, r"max_model_len \(4096\) is larger than kv_tokens \(1024\)"),
    ({"available_bytes": GIB}, {"max_model_len": 65536}, r"lower max_model_len \(65536\)"),
    ({"available_bytes": 90 * MIB}, {}, "not even 256 tokens of cache fit beside small.gguf"),
    ({"available_bytes": 90 * MIB}, {"max_model_len": 256}, "needs 100 MiB for weights.*but 90 MiB are free"),
]


@pytest.mark.parametrize(("fact_changes", "option_changes", "message"), REFUSED)
def test_what_cannot_be_is_refused_with_the_numbers(
    fact_changes: dict[str, Any], option_changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StartError, match=message):
        plan_memory(facts(**fact_changes), options(**option_changes))


@given(
    available=st.one_of(st.none(), st.integers(0, 64 * GIB)),
    n_ctx_train=st.integers(256, 1 << 20),
    sequences=st.integers(1, 256),
    length=st.one_of(st.none(), st.integers(1, 1 << 17)),
    kv_tokens=st.one_of(st.none(), st.integers(1, 1 << 20)),
    block_tokens=st.sampled_from([1, 16, 100, 256]),
    layout=st.sampled_from(["auto", "per_sequence", "unified"]),
)
def test_every_plan_keeps_its_laws(
    available: int | None,
    n_ctx_train: int,
    sequences: int,
    length: int | None,
    kv_tokens: int | None,
    block_tokens: int,
    layout: Any,
) -> None:
    chosen = options(
        max_sequences=sequences,
        max_model_len=length,
        kv_tokens=kv_tokens,
        block_tokens=block_tokens,
        kv_layout=layout,
    )
    try:
        plan = plan_memory(facts(available_bytes=available, n_ctx_train=n_ctx_train), chosen)
    except StartError:
        return
    assert plan.n_ctx % 256 == 0
    assert plan.num_blocks * block_tokens <= plan.n_ctx, "blocks promise more cells than there are"
    assert plan.max_step_tokens >= sequences
    assert plan.max_step_tokens >= plan.max_step_outputs >= sequences
    if plan.layout == "per_sequence":
        assert plan.n_ctx % sequences == 0
        assert plan.n_ctx // sequences >= plan.max_model_len
    assert plan.max_model_len <= plan.n_ctx
    assert length is None or plan.max_model_len == length
    assert layout in ("auto", plan.layout)
    assert available is None or plan.weights_bytes + plan.kv_bytes <= available
    assert plan.describe().count("\n") == 3


def test_options_cross_the_process_boundary_unchanged() -> None:
    sent = options(kv_layout="unified", tensor_split=(0.5, 0.5), n_threads=2)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=LlamaCppOptions) == sent
