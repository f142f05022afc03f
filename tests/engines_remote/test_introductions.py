"""What a remote engine says of itself is held against the tokenizer and the settings before anything is served."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harness.remote_scene import RemoteScene
from harness.sglang_speech import SglangSpeech
from harness.vllm_speech import VllmSpeech
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.sglang.sglang_kind import SglangKind
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.inference.model_info import ModelInfo

OTHER_PROBE = (("A bridge", (65, 32, 98, 999)),)
WRITER = GrammarWriter(frozenset({256}), lambda token_id: bytes([token_id]))


def vllm(facts: dict[str, Any] | None = None, **speech: Any) -> RemoteScene:
    return RemoteScene(VllmSpeech(**speech), VllmKind, waits=False, **(facts or {}))


def sglang(facts: dict[str, Any] | None = None, **speech: Any) -> RemoteScene:
    return RemoteScene(SglangSpeech(**speech), SglangKind, waits=False, **(facts or {}))


REFUSED: dict[str, tuple[Callable[[], RemoteScene], str]] = {
    "vllm: no tokens": (lambda: vllm(takes_tokens=False), "--enable-scale-out or --tokens-only"),
    "vllm: a shorter context": (
        lambda: vllm({"max_model_len": 8192}),
        "hold 4096 tokens, and model.max_model_len is 8192",
    ),
    "vllm: a smaller vocabulary": (lambda: vllm(vocab_size=200), "does not hold token 255, and the tokenizer has 258"),
    "vllm: another tokenizer": (
        lambda: vllm({"probes": OTHER_PROBE}),
        "token 3 of a text of 8 characters is 114 there and 999 here .8 tokens there, 4 here",
    ),
    "vllm: another model": (lambda: vllm({"model_name": "mine"}), "no model mine; it has test/model"),
    "vllm: in place of SGLang": (lambda: RemoteScene(VllmSpeech(), SglangKind, waits=False), "no SGLang server"),
    "sglang: a shorter context": (lambda: sglang({"max_model_len": 4096}), "hold 4090 tokens, and model.max_model_len"),
    "sglang: a smaller vocabulary": (
        lambda: sglang(vocab_size=200),
        "does not hold token 255, and the tokenizer has 258",
    ),
    "sglang: another tokenizer": (lambda: sglang({"probes": OTHER_PROBE}), "is 114 there and 999 here"),
    "sglang: another model": (lambda: sglang({"model_name": "mine"}), "no model mine; it has test/model"),
    "sglang: shared cached prompts": (lambda: sglang(version="0.4.9"), "version is 0.4.9, and before 0.5.4"),
    "sglang: half of a pair": (lambda: sglang(disaggregation_mode="prefill"), "one half of a pair .prefill"),
    "sglang: a model that embeds": (lambda: sglang(is_generation=False), "generates nothing"),
    "sglang: in place of vLLM": (lambda: RemoteScene(SglangSpeech(), VllmKind, waits=False), "does not take tokens"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_engine_that_does_not_fit_is_refused_with_the_numbers(case: tuple[Callable[[], RemoteScene], str]) -> None:
    make, words = case

    async def run() -> None:
        async with make() as scene:
            with pytest.raises(EngineStartFailed, match=words):
                await scene.watch.wait_ready()
            assert scene.url_of_stand_in in (scene.engine.statistics().condition or "")

    asyncio.run(run())


def introduce(scene: RemoteScene) -> tuple[ModelInfo, list[str]]:
    async def run() -> tuple[ModelInfo, list[str]]:
        async with scene:
            await scene.watch.wait_ready()
            model = scene.engine.statistics().model
            assert model is not None
            return model, scene.notes

    return asyncio.run(run())


def test_what_vllm_says_becomes_the_models_facts() -> None:
    model, notes = introduce(vllm())
    assert (model.vocab_size, model.max_model_len, model.eos_token_ids) == (258, 4096, (257,))
    assert (model.max_sequences, model.num_blocks, model.block_tokens) == (8, 512, 16)
    assert (model.build, model.has_prefix_cache, model.grammar_backend) == ("vllm 0.32.0", True, None)
    assert model.unserved_fields == ("bad_words",)
    assert notes == []


def test_what_vllm_does_not_say_is_computed_and_noted() -> None:
    model, notes = introduce(vllm(boot=None, tokenizes=False))
    assert (model.num_blocks, model.block_tokens) == (8 * 256, 16)
    assert notes == ["the engine does not tokenize, so only the size of its vocabulary was compared"]


def test_what_sglang_says_becomes_the_models_facts() -> None:
    model, notes = introduce(sglang(max_running_requests=4))
    assert (model.vocab_size, model.max_model_len, model.eos_token_ids) == (258, 4090, (257,))
    assert (model.max_sequences, model.num_blocks, model.block_tokens) == (4, 8192, 1)
    assert (model.build, model.has_prefix_cache, model.grammar_backend) == ("sglang 0.5.23", True, None)
    assert model.unserved_fields == ("bad_words", "allowed_token_ids")
    assert notes == ["the engine runs 4 sequences at once, and engine.max_sequences lets 8 in: some wait there"]


@pytest.mark.parametrize("has_old_paths", [True, False])
def test_a_server_of_either_age_is_understood(has_old_paths: bool) -> None:
    model, _ = introduce(sglang(has_old_paths=has_old_paths))
    assert model.build == "sglang 0.5.23"


def test_seeds_are_unserved_where_sampling_is_not_repeatable() -> None:
    model, _ = introduce(sglang(is_repeatable=False))
    assert "seed" in model.unserved_fields


def test_an_old_server_without_a_prefix_cache_shares_nothing_and_is_served() -> None:
    model, _ = introduce(sglang(version="0.4.9", disable_radix_cache=True))
    assert not model.has_prefix_cache


def test_the_operators_word_for_the_weights_changes_the_revision() -> None:
    digests = {
        introduce(make(facts))[0].weights_digest for make in (vllm, sglang) for facts in ({}, {"revision": "v2"})
    }
    assert len(digests) == 4


def test_a_shorter_context_of_the_operator_holds() -> None:
    assert introduce(vllm({"max_model_len": 1000}))[0].max_model_len == 1000
    assert introduce(sglang({"max_model_len": 1000}))[0].max_model_len == 1000


GRAMMARS: dict[str, tuple[Callable[[], RemoteScene], str | None]] = {
    "vllm with guidance": (lambda: vllm({"grammars": WRITER}, has_guidance=True), "guidance"),
    "vllm with another backend": (lambda: vllm({"grammars": WRITER}, has_guidance=False), None),
    "vllm with an old llguidance": (
        lambda: vllm({"grammars": WRITER}, has_guidance=True, has_old_llguidance=True),
        None,
    ),
    "vllm, none here": (lambda: vllm({"grammars": None}, has_guidance=True), None),
    "sglang with another backend": (lambda: sglang({"grammars": WRITER}), None),
}


@pytest.mark.parametrize("case", GRAMMARS.values(), ids=GRAMMARS)
def test_grammars_are_served_only_where_llguidance_enforces_them(
    case: tuple[Callable[[], RemoteScene], str | None],
) -> None:
    make, backend = case
    assert introduce(make())[0].grammar_backend == backend
