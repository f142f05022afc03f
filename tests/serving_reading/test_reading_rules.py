"""Every field of a request whose texts are only read has a row; what is malformed is named with its place."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_classify, decode_embeddings, decode_rerank, decode_score
from tidegate.contract.embeddings import EmbeddingRequest
from tidegate.contract.error_table import error_answer
from tidegate.contract.score import ScoreRequest
from tidegate.errors import InvalidRequest
from tidegate.serving.field_rule import Use
from tidegate.serving.reading_rules import READING_RULES, check_reading, documents_of, pairs_of
from tidegate.serving.request_policy import RequestPolicy

DECODE: dict[str, Any] = {
    "embeddings": decode_embeddings,
    "score": decode_score,
    "rerank": decode_rerank,
    "classify": decode_classify,
}
RIGHT: dict[str, dict[str, Any]] = {
    "embeddings": {"model": "m", "input": "a"},
    "score": {"model": "m", "text_1": "a", "text_2": "b"},
    "rerank": {"model": "m", "query": "a", "documents": ["b"]},
    "classify": {"model": "m", "input": "a", "labels": ["b"]},
}
ANYWHERE: list[tuple[dict[str, Any], str]] = [
    ({"model": ""}, "model"),
    ({"model": 5}, "model"),
    ({"user": "x" * 513}, "user"),
    ({"user": 5}, "user"),
    ({"priority": 101}, "priority"),
    ({"deadline_ms": 0}, "deadline_ms"),
    ({"first_token_deadline_ms": "1"}, "first_token_deadline_ms"),
]
INPUTS: list[tuple[dict[str, Any], str]] = [
    ({"input": 5}, "input"),
    ({"input": {"text": "a"}}, "input"),
    ({"input": [True]}, "input[0]"),
    ({"input": ["a", {"text": "a"}]}, "input[1]"),
    ({"input": ["a", [1, "b"]]}, "input[1][1]"),
    ({"input": [1.5]}, "input[0]"),
    ({"input": ["a"] * 9}, "input"),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    *((route, *row) for route in RIGHT for row in ANYWHERE),
    *((route, *row) for route in ("embeddings", "classify") for row in INPUTS),
    ("embeddings", {"encoding_format": "hex"}, "encoding_format"),
    ("embeddings", {"encoding_format": ["float"]}, "encoding_format"),
    ("embeddings", {"dimensions": 0}, "dimensions"),
    ("embeddings", {"dimensions": -1}, "dimensions"),
    ("embeddings", {"dimensions": 1.5}, "dimensions"),
    ("embeddings", {"dimensions": True}, "dimensions"),
    ("embeddings", {"normalize": 1}, "normalize"),
    ("score", {"text_1": []}, "text_1"),
    ("score", {"text_1": 5}, "text_1"),
    ("score", {"text_1": ""}, "text_1"),
    ("score", {"text_2": ["a", ""]}, "text_2[1]"),
    ("score", {"text_2": [["a"]]}, "text_2[0]"),
    ("score", {"text_2": ["a"] * 9}, "text_2"),
    ("score", {"text_1": ["a", "b"], "text_2": "c"}, "text_2"),
    ("score", {"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}, "text_2"),
    ("score", {"use_activation": "no"}, "use_activation"),
    ("rerank", {"query": ""}, "query"),
    ("rerank", {"query": ["a"]}, "query"),
    ("rerank", {"documents": []}, "documents"),
    ("rerank", {"documents": "a"}, "documents"),
    ("rerank", {"documents": ["a", ""]}, "documents[1]"),
    ("rerank", {"documents": [{"text": ""}]}, "documents[0]"),
    ("rerank", {"documents": [{"title": "a"}]}, "documents[0].text"),
    ("rerank", {"documents": [{"text": 5}]}, "documents[0].text"),
    ("rerank", {"documents": [5]}, "documents[0]"),
    ("rerank", {"documents": ["a"] * 9}, "documents"),
    ("rerank", {"top_n": 0}, "top_n"),
    ("rerank", {"return_documents": 1}, "return_documents"),
    ("classify", {"labels": []}, "labels"),
    ("classify", {"labels": [""]}, "labels[0]"),
    ("classify", {"labels": "a"}, "labels"),
    ("classify", {"labels": ["a", "b", "a"]}, "labels[2]"),
    ("classify", {"labels": ["a", "b", "c", "d", "e"]}, "labels"),
    ("classify", {"input": ["a"] * 3, "labels": ["a", "b", "c"]}, "labels"),
]
POLICY = RequestPolicy(Limits(inputs=8, labels=4))


def check(route: str, **members: Any) -> Any:
    body = {name: value for name, value in (RIGHT[route] | members).items() if value is not ...}
    request = DECODE[route](json.dumps(body).encode(), Limits())
    check_reading(request, POLICY)
    return request


@pytest.mark.parametrize(("route", "members", "param"), WRONG, ids=[f"{r}-{m}"[:70] for r, m, _ in WRONG])
def test_what_is_malformed_is_400_with_its_place(route: str, members: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        check(route, **members)
    error = json.loads(error_answer(raised.value).body)["error"]
    assert (error["param"], error_answer(raised.value).status) == (param, 400)


@pytest.mark.parametrize("route", RIGHT)
def test_what_is_required_is_missed_by_name(route: str) -> None:
    check(route)
    for name in RIGHT[route].keys() - {"labels"}:
        with pytest.raises(InvalidRequest) as raised:
            check(route, **{name: ...})
        assert raised.value.param == name


@pytest.mark.parametrize("kind", READING_RULES, ids=lambda kind: kind.__name__)
def test_every_field_has_a_row(kind: type[msgspec.Struct]) -> None:
    rules = READING_RULES[kind]
    assert set(rules) == set(kind.__struct_fields__)
    assert {name for name, rule in rules.items() if rule.use is not Use.ACTS} == {"user"}


@pytest.mark.parametrize("count", [8, 9])
def test_the_number_of_texts_is_bounded_and_the_limit_is_named(count: int) -> None:
    for route, members in (
        ("embeddings", {"input": ["a"] * count}),
        ("score", {"text_2": ["a"] * count}),
        ("rerank", {"documents": ["a"] * count}),
        ("classify", {"input": ["a"] * count}),
    ):
        if count == 8:
            check(route, **members)
            continue
        with pytest.raises(InvalidRequest) as raised:
            check(route, **members)
        limit = raised.value.limit
        assert limit is not None
        assert (limit.name, limit.value, limit.actual) == ("inputs", 8, 9)


def test_labels_are_bounded_by_number_and_by_what_they_make_the_model_read() -> None:
    check("classify", input=["a", "b"], labels=["a", "b", "c", "d"])
    for members, name, actual in (
        ({"labels": ["a", "b", "c", "d", "e"]}, "labels", 5),
        ({"input": ["a"] * 5, "labels": ["a", "b"]}, "inputs", 10),
    ):
        with pytest.raises(InvalidRequest) as raised:
            check("classify", **members)
        assert raised.value.limit is not None
        assert (raised.value.limit.name, raised.value.limit.actual) == (name, actual)


def test_a_list_of_numbers_is_one_input_and_null_is_absent() -> None:
    check("embeddings", input=list(range(100)))
    request = check("embeddings", dimensions=None, encoding_format=None, normalize=None, user=None)
    assert request == EmbeddingRequest(model="m", input="a")


def test_one_text_goes_with_each_of_the_others_and_lists_go_in_pairs() -> None:
    for first, second, pairs in (
        ("a", "b", [("a", "b")]),
        ("a", ["b", "c"], [("a", "b"), ("a", "c")]),
        (["a"], ["b", "c"], [("a", "b"), ("a", "c")]),
        (["a", "b"], ["c", "d"], [("a", "c"), ("b", "d")]),
    ):
        assert pairs_of(ScoreRequest(model="m", text_1=first, text_2=second)) == pairs  # type: ignore[arg-type]


def test_documents_are_texts_however_they_are_given() -> None:
    assert documents_of(check("rerank", documents=["a", {"text": "b", "title": 5}])) == ["a", "b"]
