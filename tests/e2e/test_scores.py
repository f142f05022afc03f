"""`/v1/score`, `/v1/rerank` and `/v1/classify` on each kind of model: by its head, by likelihood, by cosine."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from harness.raw_http import Answer, request
from harness.server_thread import ServerThread

pytestmark = pytest.mark.process

KINDS: dict[str, dict[str, Any]] = {
    "likelihood": {},
    "cosine": {"engine__simulated_model": "encoder"},
    "head": {"engine__simulated_model": "encoder", "engine__pooling": "rank"},
    "classes": {
        "engine__simulated_model": "encoder",
        "engine__pooling": "rank",
        "engine__simulated_labels": ("calm", "rough"),
    },
}
QUERY, NEAR, FAR = "tides of the sea", "tides of a sea", "0123456789"


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with ServerThread("simulated", **KINDS[request.param]) as running:
        yield running


def kind_of(server: ServerThread) -> str:
    reading = request(server.port, "GET", "/v1/contract").json()["models"][0]["reading"]
    return "classes" if len(reading["labels"]) > 1 else str(reading["scores_by"])


def ask(server: ServerThread, route: str, **members: Any) -> Answer:
    return request(server.port, "POST", f"/v1/{route}", {"model": "simulated", **members})


def error_of(answer: Answer) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status, error["code"], error["param"]


def scores(answer: Answer) -> list[float]:
    assert answer.status == 200, answer.body
    body = answer.json()
    assert body["id"].startswith("score-")
    assert [(row["object"], row["index"]) for row in body["data"]] == [("score", i) for i in range(len(body["data"]))]
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] > 0
    return [row["score"] for row in body["data"]]


def test_pairs_are_scored_in_order_alone_or_together(server: ServerThread) -> None:
    answer = ask(server, "score", text_1=QUERY, text_2=[NEAR, FAR])
    if kind_of(server) == "classes":
        assert error_of(answer) == (422, "unsupported_parameter", "model")
        return
    both = scores(answer)
    assert scores(ask(server, "score", text_1=QUERY, text_2=NEAR)) == pytest.approx(both[:1])
    assert scores(ask(server, "score", text_1=[QUERY, QUERY], text_2=[FAR, NEAR])) == pytest.approx(both[::-1])
    if kind_of(server) != "likelihood":  # what the simulated engine writes says nothing of what it has read
        assert both[0] > both[1]


def test_activated_scores_are_what_the_raw_ones_say(server: ServerThread) -> None:
    kind = kind_of(server)
    if kind == "classes":
        return
    activated = scores(ask(server, "score", text_1=QUERY, text_2=[NEAR, FAR]))
    raw = scores(ask(server, "score", text_1=QUERY, text_2=[NEAR, FAR], use_activation=False))
    expected = raw if kind == "cosine" else [1 / (1 + math.exp(-value)) for value in raw]
    assert activated == pytest.approx(expected)


def test_documents_are_ranked_and_returned_on_demand(server: ServerThread) -> None:
    documents: list[Any] = [FAR, {"text": NEAR, "title": "ignored"}, FAR]
    answer = ask(server, "rerank", query=QUERY, documents=documents, top_n=2, return_documents=True)
    if kind_of(server) == "classes":
        assert error_of(answer) == (422, "unsupported_parameter", "model")
        return
    results = answer.json()["results"]
    assert [row["relevance_score"] for row in results] == sorted((r["relevance_score"] for r in results), reverse=True)
    assert all(row["document"] == {"text": [FAR, NEAR, FAR][row["index"]]} for row in results)
    assert [row["index"] for row in results] == ([0, 1] if kind_of(server) == "likelihood" else [1, 0])
    plain = ask(server, "rerank", query=QUERY, documents=documents).json()["results"]
    assert len(plain) == 3
    assert not any("document" in row for row in plain)


def test_a_question_is_read_once_for_both_answers(server: ServerThread) -> None:
    if kind_of(server) != "likelihood":
        return
    before = server.look(lambda: server.running.supervisor.engine.statistics().gauges)
    answer = ask(server, "score", text_1="how high is the tide", text_2=["a wall", "the moon"])
    usage = answer.json()["usage"]
    after = server.look(lambda: server.running.supervisor.engine.statistics().gauges)
    num_cached = usage["prompt_tokens_details"]["cached_tokens"]
    num_computed = after.num_prefill_tokens - before.num_prefill_tokens
    assert num_computed == usage["prompt_tokens"] - num_cached
    assert num_computed < 0.6 * usage["prompt_tokens"]


def test_equal_texts_are_read_once_where_each_is_read_by_itself(server: ServerThread) -> None:
    if kind_of(server) == "cosine":
        usage = ask(server, "score", text_1="abc", text_2=["abc", "de", "de"]).json()["usage"]
        assert usage["prompt_tokens"] == 5


def test_a_text_that_does_not_fit_is_named(server: ServerThread) -> None:
    if kind_of(server) == "classes":
        return
    answer = ask(server, "rerank", query="a", documents=["b", "c" * 5000])
    assert error_of(answer) == (400, "context_length_exceeded", "documents[1]")
    assert answer.json()["error"]["limit"]["value"] == 4096
    assert error_of(ask(server, "score", text_1=["a", "b" * 5000], text_2=["a", "b"]))[2] in ("text_1[1]", "text_2[1]")


def test_classes_are_the_heads_or_the_callers(server: ServerThread) -> None:
    kind = kind_of(server)
    inputs = [list(b"abc"), list(b"ab")]
    named = ask(server, "classify", input=inputs, labels=["c", "d"])
    plain = ask(server, "classify", input=inputs)
    if kind == "likelihood":
        assert error_of(plain) == (400, "missing_field", "labels")
        assert [row["label"] for row in named.json()["data"]] == ["d", "c"]  # the successor of the last byte
        check_classes(named, ["c", "d"])
        after_blank = ask(server, "classify", input="so ", labels=["!", "?"])
        assert after_blank.json()["data"][0]["label"] == "!"
        usage = ask(server, "classify", input="so", labels=["!", " ?"]).json()["usage"]
        assert usage["prompt_tokens"] == 8  # one blank stands before each label
    elif kind == "cosine":
        assert error_of(named) == error_of(plain) == (422, "unsupported_parameter", "model")
    else:
        assert error_of(named) == (422, "unsupported_parameter", "labels")
        check_classes(plain, ["calm", "rough"] if kind == "classes" else ["LABEL_0"])


def check_classes(answer: Answer, labels: list[str]) -> None:
    assert answer.status == 200, answer.body
    body = answer.json()
    assert (body["object"], body["labels"]) == ("list", labels)
    for index, row in enumerate(body["data"]):
        assert (row["index"], row["num_classes"], len(row["probs"])) == (index, len(labels), len(labels))
        assert row["label"] == labels[row["probs"].index(max(row["probs"]))]
        assert len(labels) == 1 or math.isclose(sum(row["probs"]), 1.0)


def test_what_is_empty_is_named(server: ServerThread) -> None:
    for route, members, param in (
        ("score", {"text_1": "", "text_2": "a"}, "text_1"),
        ("rerank", {"query": "a", "documents": ["b", ""]}, "documents[1]"),
        ("classify", {"input": ["a", ""], "labels": ["x"]}, "input[1]"),
    ):
        assert error_of(ask(server, route, **members)) == (400, "invalid_value", param)
