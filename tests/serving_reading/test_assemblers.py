"""Numbers outward: exact in both encodings, in the order of the inputs, and never without a value."""

import base64
import json
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from tidegate.inference.event import ContentText, PromptLikelihood, PromptVector
from tidegate.serving.chunk_head import ReplyIdentity
from tidegate.serving.class_assembler import ClassAssembler, ClassPlan
from tidegate.serving.embedding_assembler import EmbeddingAssembler, EmbeddingForm
from tidegate.serving.model_tasks import Method
from tidegate.serving.score_assembler import (
    RankingAssembler,
    RankingForm,
    ScoreAssembler,
    ScorePlan,
)
from tidegate.serving.usage import TokenCounts
from tidegate.serving.vectors import cosine, shape_embedding, sigmoid, softmax

IDENTITY = ReplyIdentity("id-1", 7, "m", "fp")
COUNTS = TokenCounts(num_prompt=12, num_cached=4)
USAGE = {"prompt_tokens": 12, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
HARD = (0.1, -1 / 3, 1e-38, 1e-45, 3.4e38, -0.0, 16777217.0)


def packed(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def unpacked(data: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def embed(vectors: Sequence[Sequence[float]], form: EmbeddingForm, order: Sequence[int] | None = None) -> Any:
    assembler = EmbeddingAssembler(IDENTITY, len(vectors), form)
    for index in order or range(len(vectors)):
        assembler.feed(index, PromptVector(packed(*vectors[index])))
    assert assembler.num_numbers == sum(len(vector[: form.dimensions]) for vector in vectors)
    return json.loads(assembler.result(COUNTS))


def test_an_answer_has_the_public_members() -> None:
    assert embed([[0.5, 2.0]], EmbeddingForm(normalize=False)) == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 2.0]}],
        "model": "m",
        "usage": USAGE,
    }


@pytest.mark.parametrize("normalize", [True, False])
def test_both_encodings_are_the_same_floats_bit_by_bit(normalize: bool) -> None:
    rng = random.Random(5)
    vectors = [HARD[:4] + HARD[5:], [rng.gauss(0, 1) for _ in range(384)]]
    numbers = embed(vectors, EmbeddingForm(normalize=normalize))["data"]
    texts = embed(vectors, EmbeddingForm(normalize=normalize, is_base64=True))["data"]
    for row, text in zip(numbers, texts, strict=True):
        assert packed(*row["embedding"]) == base64.b64decode(text["embedding"], validate=True)


def test_without_normalizing_the_numbers_are_the_models_own() -> None:
    [row] = embed([HARD], EmbeddingForm(normalize=False))["data"]
    assert packed(*row["embedding"]) == packed(*HARD)


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20, 1e38])
def test_the_length_is_one_whatever_the_model_gave(scale: float) -> None:
    vector = shape_embedding(packed(scale * 0.3, -scale * 0.4, scale * 0.1), None, normalize=True)
    assert math.isclose(math.hypot(*vector.tolist()), 1.0, rel_tol=1e-6)


def test_a_vector_of_zeros_stays_one() -> None:
    assert embed([[0.0, 0.0]], EmbeddingForm())["data"][0]["embedding"] == [0.0, 0.0]


def test_a_cut_vector_has_its_first_components_and_length_one() -> None:
    [row] = embed([[3.0, 4.0, 100.0]], EmbeddingForm(dimensions=2))["data"]
    assert row["embedding"] == unpacked(packed(0.6, 0.8))
    [raw] = embed([[3.0, 4.0, 100.0]], EmbeddingForm(dimensions=2, normalize=False))["data"]
    assert raw["embedding"] == [3.0, 4.0]


@pytest.mark.parametrize("seed", range(5))
def test_rows_stand_in_the_order_of_the_inputs_in_whatever_order_they_finished(seed: int) -> None:
    order = random.Random(seed).sample(range(9), 9)
    rows = embed([[float(index)] for index in range(9)], EmbeddingForm(normalize=False), order)["data"]
    assert [(row["index"], row["embedding"]) for row in rows] == [(index, [float(index)]) for index in range(9)]


def test_text_is_no_answer_of_these() -> None:
    for assembler in (
        EmbeddingAssembler(IDENTITY, 1, EmbeddingForm()),
        ScoreAssembler(IDENTITY, ScorePlan(Method.HEAD, [(0,)])),
        ClassAssembler(IDENTITY, ClassPlan(1, None)),
    ):
        with pytest.raises(TypeError):
            assembler.feed(0, ContentText("a"))


def head(*raw: float, use_activation: bool = True) -> ScorePlan:
    return ScorePlan(Method.HEAD, [(index,) for index in range(len(raw))], use_activation)


def scores(plan: ScorePlan, events: Sequence[PromptVector | PromptLikelihood]) -> list[float]:
    assembler = ScoreAssembler(IDENTITY, plan)
    for index in reversed(range(len(events))):
        assembler.feed(index, events[index])
    answer = json.loads(assembler.result(COUNTS))
    assert (answer["id"], answer["object"], answer["created"], answer["model"]) == ("id-1", "list", 7, "m")
    assert [row["index"] for row in answer["data"]] == list(range(len(plan.parts)))
    assert answer["usage"] == USAGE
    return [row["score"] for row in answer["data"]]


def test_a_heads_output_is_a_probability_or_itself() -> None:
    events = [PromptVector(packed(value)) for value in (2.0, -2.0, 0.0)]
    assert scores(head(1, 2, 3), events) == [sigmoid(2.0), sigmoid(-2.0), 0.5]
    assert scores(head(1, 2, 3, use_activation=False), events) == [2.0, -2.0, 0.0]


def test_likelihoods_are_weighed_against_each_other() -> None:
    events = [PromptLikelihood(math.log(value)) for value in (0.3, 0.1, 0.02, 0.02)]
    plan = ScorePlan(Method.LIKELIHOOD, [(0, 1), (2, 3)])
    assert scores(plan, events) == pytest.approx([0.75, 0.5])
    raw = ScorePlan(Method.LIKELIHOOD, [(0, 1), (2, 3)], use_activation=False)
    assert scores(raw, events) == pytest.approx([math.log(3), 0.0])


def test_cosines_need_no_activation_and_texts_may_be_shared() -> None:
    events = [PromptVector(packed(*vector)) for vector in ((1, 0), (2, 0), (0, 3), (0, 0))]
    for use_activation in (True, False):
        plan = ScorePlan(Method.COSINE, [(0, 1), (0, 2), (0, 3)], use_activation)
        assert scores(plan, events) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_a_cosine_is_never_beyond_one_and_has_its_sign(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        vector = [rng.gauss(0, 1) for _ in range(7)]
        scaled = [rng.uniform(0.1, 9) * component for component in vector]
        assert -1.0 <= cosine(packed(*vector), packed(*vector)) <= 1.0
        assert -1.0 <= cosine(packed(*vector), packed(*(-component for component in vector))) <= 1.0
        assert -1.0 <= cosine(packed(*vector), packed(*scaled)) <= 1.0
    assert cosine(packed(1, 1), packed(-1, 0)) == pytest.approx(-math.sqrt(0.5))


def test_a_head_that_tells_classes_scores_nothing() -> None:
    with pytest.raises(RuntimeError, match="2 outputs"):
        ScoreAssembler(IDENTITY, head(1)).feed(0, PromptVector(packed(1, 2)))


def rank(values: Sequence[float], form: RankingForm) -> Any:
    assembler = RankingAssembler(IDENTITY, head(*values, use_activation=False), form)
    for index, value in enumerate(values):
        assembler.feed(index, PromptVector(packed(value)))
    return json.loads(assembler.result(COUNTS))


def test_a_ranking_begins_with_the_best_and_of_equals_with_the_first() -> None:
    answer = rank([0.5, 2.0, 0.5, 2.0, -1.0], RankingForm())
    assert [row["index"] for row in answer["results"]] == [1, 3, 0, 2, 4]
    assert [row["relevance_score"] for row in answer["results"]] == [2.0, 2.0, 0.5, 0.5, -1.0]
    assert all(row.keys() == {"index", "relevance_score"} for row in answer["results"])
    assert answer.keys() == {"id", "object", "created", "model", "results", "usage"}


@pytest.mark.parametrize(("top_n", "indices"), [(1, [1]), (2, [1, 0]), (9, [1, 0, 2]), (None, [1, 0, 2])])
def test_as_many_as_asked_for_are_returned_with_their_texts_on_demand(top_n: int | None, indices: list[int]) -> None:
    answer = rank([1.0, 2.0, 0.0], RankingForm(top_n, ["a", "b", "c"]))
    assert [(row["index"], row["document"]) for row in answer["results"]] == [(i, {"text": "abc"[i]}) for i in indices]


def classify(plan: ClassPlan, events: Sequence[PromptVector | PromptLikelihood]) -> Any:
    assembler = ClassAssembler(IDENTITY, plan)
    for index in reversed(range(len(events))):
        assembler.feed(index, events[index])
    return json.loads(assembler.result(COUNTS))


def test_a_heads_outputs_are_shares_of_one() -> None:
    answer = classify(ClassPlan(2, ("x", "y")), [PromptVector(packed(0, 0)), PromptVector(packed(1, 3))])
    assert answer["labels"] == ["x", "y"]
    assert answer["data"][0] == {"index": 0, "label": "x", "probs": [0.5, 0.5], "num_classes": 2}
    assert (answer["data"][1]["label"], answer["data"][1]["probs"]) == ("y", softmax([1.0, 3.0]))


def test_labels_without_names_are_numbered_and_a_single_one_is_a_yes_or_no() -> None:
    answer = classify(ClassPlan(1, None), [PromptVector(packed(0.0))])
    assert (answer["labels"], answer["data"][0]["label"], answer["data"][0]["probs"]) == (["LABEL_0"], "LABEL_0", [0.5])
    raw = classify(ClassPlan(1, None, use_activation=False), [PromptVector(packed(-3.0, 4.0))])
    assert (raw["data"][0]["label"], raw["data"][0]["probs"]) == ("LABEL_1", [-3.0, 4.0])


def test_likelihoods_of_labels_are_shares_of_one_in_the_order_of_the_labels() -> None:
    events = [PromptLikelihood(math.log(value)) for value in (0.1, 0.3, 0.04, 0.01)]
    answer = classify(ClassPlan(2, ["a", "b"], is_head=False), events)
    assert [row["label"] for row in answer["data"]] == ["b", "a"]
    assert [row["probs"] for row in answer["data"]] == [pytest.approx([0.25, 0.75]), pytest.approx([0.8, 0.2])]
    single = classify(ClassPlan(1, ["a"], is_head=False), [PromptLikelihood(-700.0)])
    assert single["data"][0]["probs"] == [1.0]


def test_what_waits_for_a_slow_reader_is_counted_in_numbers() -> None:
    assembler = ClassAssembler(IDENTITY, ClassPlan(2, ("x", "y")))
    for index, row in enumerate((packed(1, 2), packed(3, 4))):
        assembler.feed(index, PromptVector(row))
    assert assembler.num_numbers == 4


def test_a_head_must_have_an_output_for_each_label() -> None:
    with pytest.raises(RuntimeError, match="3 outputs for 2 labels"):
        classify(ClassPlan(1, ("x", "y")), [PromptVector(packed(1, 2, 3))])


@pytest.mark.parametrize("value", [-9999.0, -745.0, -1.0, 0.0, 1.0, 745.0, 19998.0])
def test_no_number_overflows(value: float) -> None:
    assert 0.0 <= sigmoid(value) <= 1.0
    assert math.isclose(sigmoid(value) + sigmoid(-value), 1.0)
    assert math.isclose(sum(softmax([value, 0.0, -value])), 1.0)
    assert cosine(packed(3e38, 3e38), packed(3e38, 3e38)) == pytest.approx(1.0)
