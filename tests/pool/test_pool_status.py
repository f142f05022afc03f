"""What several engines are together: which fact of two is the pool's, and what is said of an engine that is out."""

from typing import Any

import msgspec
import pytest

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engines.pool.identity import differences, identity_of
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.pool_status import (
    MemberStatus,
    describe_member,
    join_gauges,
    join_models,
    join_status,
    join_statuses,
)
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.pooling import PoolingInfo, PoolingMode

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab" * 32, "by hand 1", has_prefix_cache=True)


def status(model: ModelInfo | None = MODEL, *, is_ready: bool = True, **fields: Any) -> EngineStatus:
    return EngineStatus(
        **{"epoch": 1, "num_restarts": 0, "num_stale_outputs": 0, "gauges": EngineGauges()}
        | fields
        | {"is_ready": is_ready, "model": model}
    )


def member(
    name: str, one: EngineStatus | None = None, state: MemberState = MemberState.READY, **fields: Any
) -> MemberStatus:
    return MemberStatus(
        name, state, one or status(), **{"num_tokens": 0, "num_requests": 0, "num_sequences": 0} | fields
    )


FACTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("the shorter context", {"max_model_len": 100}, {"max_model_len": 100}),
    ("the sum of rows", {"max_sequences": 3}, {"max_sequences": 11}),
    ("blocks in those of the first", {"num_blocks": 100, "block_tokens": 32}, {"num_blocks": 456, "block_tokens": 16}),
    ("a prefix cache only where all have one", {"has_prefix_cache": False}, {"has_prefix_cache": False}),
    ("the longest chunk", {"prefill_chunk_tokens": 7}, {"prefill_chunk_tokens": 7}),
    ("the longest step", {"max_step_tokens": 9}, {"max_step_tokens": 9}),
    ("what any does not serve", {"unserved_fields": ("seed",)}, {"unserved_fields": ("seed",)}),
    ("whose memory it is", {"memory": "1 GB"}, {"memory": "b: 1 GB"}),
]


@pytest.mark.parametrize(("other", "joined"), [row[1:] for row in FACTS], ids=[row[0] for row in FACTS])
def test_a_fact_of_two_engines(other: dict[str, Any], joined: dict[str, Any]) -> None:
    expected = msgspec.structs.replace(MODEL, **{"max_sequences": 16, "num_blocks": 512} | joined)
    found = join_models([member("a"), member("b", status(msgspec.structs.replace(MODEL, **other)))])
    assert found == expected


def test_an_engine_of_another_revision_or_without_a_word_adds_nothing() -> None:
    odd = member("b", status(msgspec.structs.replace(MODEL, max_model_len=9)), is_conflicting=True)
    silent = member("c", status(None, is_ready=False), MemberState.STARTING)
    assert join_models([member("a"), odd, silent]) == MODEL
    assert join_models([silent]) is None


def test_sums_greatest_ones_and_what_is_counted_for_all_together() -> None:
    first = status(
        epoch=2,
        num_stalls=1,
        num_poison_suspects=3,
        num_poison_refusals=4,
        retry_after_s=7,
        num_stale_outputs=1,
        gauges=EngineGauges(num_running=1, step_s=0.5, num_step_tokens=9, num_steps=10),
    )
    second = status(
        is_ready=False,
        epoch=3,
        num_stalls=1,
        num_poison_suspects=2,
        num_poison_refusals=4,
        retry_after_s=5,
        gauges=EngineGauges(num_running=4, step_s=0.25, num_step_tokens=11, num_steps=20),
    )
    both = join_status([member("a", first), member("b", second, MemberState.EJECTED)], 2)
    assert (both.is_ready, both.epoch, both.num_stalls, both.num_stale_outputs, both.num_engines) == (True, 5, 2, 3, 1)
    assert (both.num_poison_suspects, both.num_poison_refusals) == (3, 4), "they share one watch"
    assert both.retry_after_s == 5
    assert join_gauges([first, second]) == EngineGauges(num_running=1, step_s=0.5, num_step_tokens=11, num_steps=30)
    models = join_statuses([first, second])
    assert (models.is_ready, models.retry_after_s) == (False, 7), "who waits, waits for all models"
    assert (models.num_poison_suspects, models.num_poison_refusals) == (5, 8), "each model has a watch of its own"
    assert join_status([], 0).is_ready is False


WORDS: list[tuple[str, MemberStatus, str | None, bool]] = [
    ("well", member("a"), None, True),
    ("on trial", member("a", state=MemberState.PROBING), "on trial", True),
    ("ejected", member("a", state=MemberState.EJECTED, cause="it lost three"), "ejected: it lost three", True),
    (
        "drained",
        member("a", state=MemberState.DRAINING, num_requests=2),
        "taken out by an operator, 2 requests left",
        False,
    ),
    ("retiring", member("a", state=MemberState.RETIRING), "retiring, 0 requests left", False),
    ("of another revision", member("a", is_conflicting=True), "it serves another revision than the pool", False),
    ("away", member("a", status(is_ready=False, condition="it starts")), "it starts", False),
    ("away without a word", member("a", status(is_ready=False)), "the engine is not ready", False),
]


@pytest.mark.parametrize(("one", "words", "is_usable"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_what_is_said_of_an_engine_and_whether_it_would_be_tried(
    one: MemberStatus, words: str | None, is_usable: bool
) -> None:
    assert (describe_member(one), one.is_usable) == (words, is_usable)
    assert join_status([one], 0).is_ready is is_usable


OTHERS: list[tuple[str, Any]] = [
    ("weights", {"weights_digest": "cd" * 32}),
    ("build", {"build": "by hand 2"}),
    ("grammar_backend", {"grammar_backend": "llguidance 1.9.1"}),
    ("vocab_size", {"vocab_size": 259}),
    ("eos_token_ids", {"eos_token_ids": (257, 256)}),
    ("generates", {"generates": False}),
    ("pooling", {"pooling": PoolingInfo(PoolingMode.CLS, 8, 8)}),
]


@pytest.mark.parametrize(("name", "fields"), OTHERS, ids=[row[0] for row in OTHERS])
def test_a_fact_that_answers_depend_on_makes_another_revision(name: str, fields: dict[str, Any]) -> None:
    one, other = identity_of(MODEL), identity_of(msgspec.structs.replace(MODEL, **fields))
    assert one != other
    assert differences(one, other).startswith(f"{name} (")
    assert " and " in differences(one, other)
    assert all(len(part) < 80 for part in differences(one, other).split(", ")), "digests are cut"


def test_sizes_make_no_other_revision() -> None:
    other = msgspec.structs.replace(MODEL, max_model_len=9, max_sequences=1, num_blocks=1, memory="little")
    assert identity_of(MODEL) == identity_of(other)
    assert differences(identity_of(MODEL), identity_of(other)) == ""
