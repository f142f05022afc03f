"""`/v1/embeddings` as a caller meets it: values, encodings, limits, and every way in which a call may end."""

import base64
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from harness.keys import add_key, bearing
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, live_requests, read_metrics
from tidegate.lifecycle.principal import Quotas

pytestmark = pytest.mark.process

PATH = "/v1/embeddings"
DIMENSIONS = 64
LONG_CALL = ["x" * 4000] * 300
"""Takes about a minute of a simulated engine that has declared costs."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated", engine__simulated_model="encoder", model__min_dimensions=8) as running:
        yield running


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """A model that writes and embeds, in declared time. An engine that dies comes back at once."""
    settings = {"engine__simulated_cost": True, "engine__restart_wait_s": 0.001, "limits__inputs": 400}
    with ServerThread("simulated", **settings) as running:
        yield running


def ask(server: ServerThread, value: Any = "the sea", headers: dict[str, str] | None = None, **members: Any) -> Answer:
    return request(server.port, "POST", PATH, {"model": "simulated", "input": value, **members}, headers)


def rows(answer: Answer) -> list[list[float]]:
    assert answer.status == 200, answer.body
    data = answer.json()["data"]
    assert [row["index"] for row in data] == list(range(len(data)))
    return [row["embedding"] for row in data]


def error_of(answer: Answer) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status, error["code"], error["param"]


def test_an_answer_says_what_it_is_and_who_made_it(server: ServerThread) -> None:
    answer = ask(server, ["the sea", [1, 2, 3]], user="me", colour="red")
    body = answer.json()
    assert (body["object"], body["model"]) == ("list", "simulated")
    assert body["usage"] == {
        "prompt_tokens": 10,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert answer.headers["tidegate-ignored-fields"] == "colour"
    assert len(answer.headers["tidegate-served-revision"]) == 32
    for vector in rows(answer):
        assert len(vector) == DIMENSIONS
        assert math.isclose(math.hypot(*vector), 1.0, rel_tol=1e-5)


def test_every_form_of_input_is_the_same_text(server: ServerThread) -> None:
    ids = list(b"abc")
    for value in ("abc", ["abc"], ids, [ids]):
        assert rows(ask(server, value)) == rows(ask(server, "abc"))
    assert rows(ask(server, ["abc", ids, "x"]))[0] == rows(ask(server, ["x", "abc"]))[1]


def test_base64_is_the_same_floats_and_raw_vectors_are_longer(server: ServerThread) -> None:
    [numbers] = rows(ask(server))
    text = ask(server, encoding_format="base64").json()["data"][0]["embedding"]
    assert struct.pack(f"<{DIMENSIONS}f", *numbers) == base64.b64decode(text, validate=True)
    [raw] = rows(ask(server, normalize=False))
    assert not math.isclose(math.hypot(*raw), 1.0, rel_tol=1e-3)


def test_vectors_are_cut_only_as_far_as_the_operator_says(server: ServerThread, slow: ServerThread) -> None:
    [whole], [cut] = rows(ask(server)), rows(ask(server, dimensions=8))
    length = math.hypot(*whole[:8])
    assert cut == pytest.approx([number / length for number in whole[:8]], rel=1e-6)
    assert len(rows(ask(server, dimensions=DIMENSIONS))[0]) == DIMENSIONS
    assert error_of(ask(server, dimensions=7)) == (422, "unsupported_parameter", "dimensions")
    assert error_of(ask(server, dimensions=DIMENSIONS + 1)) == (400, "invalid_value", "dimensions")
    assert error_of(ask(slow, dimensions=8)) == (422, "unsupported_parameter", "dimensions")


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_the_official_client_reads_it(server: ServerThread, form: Any) -> None:
    members = {} if form is None else {"encoding_format": form}
    with OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        answer = client.embeddings.create(model="simulated", input=["the sea", "b"], **members)
    assert [row.index for row in answer.data] == [0, 1]
    [expected] = rows(ask(server))
    given = answer.data[0].embedding
    if form == "base64":
        given = list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(str(given))))
    assert given == pytest.approx(expected, abs=1e-12)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == 8


WRONG: dict[str, tuple[Any, str, str]] = {
    "empty text": ("", "invalid_value", "input"),
    "empty list": ([], "invalid_value", "input"),
    "empty text in a list": (["a", ""], "invalid_value", "input[1]"),
    "empty ids": (["a", []], "invalid_value", "input[1]"),
    "id out of range": ([1, 258], "invalid_value", "input"),
    "negative id": ([[5], [-1]], "invalid_value", "input[1]"),
    "a number among texts": (["a", 5], "invalid_value", "input[1]"),
    "too long": (["a", "b" * 5000], "context_length_exceeded", "input[1]"),
    "too many ids": ([0] * 4097, "context_length_exceeded", "input"),
    "too many": (["a"] * 2049, "invalid_value", "input"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_named_and_costs_nothing(server: ServerThread, name: str) -> None:
    value, code, param = WRONG[name]
    before = read_metrics(server.admin_port)
    answer = ask(server, value)
    assert error_of(answer) == (400, code, param)
    limit = answer.json()["error"].get("limit")
    if code == "context_length_exceeded":
        actual = 5000 if name == "too long" else 4097
        assert (limit["name"], limit["value"], limit["actual"]) == ("input_tokens", 4096, actual)
    assert read_metrics(server.admin_port).since(before, "prompt_tokens_total") == 0


def test_2048_texts_are_one_call(server: ServerThread) -> None:
    found = rows(ask(server, [f"Line {n}" for n in range(2048)]))
    assert len(found) == 2048
    assert found[2047] == rows(ask(server, "Line 2047"))[0]
    assert server.baseline().num_live == 0


def test_a_model_that_only_reads_writes_nothing_and_says_so(server: ServerThread) -> None:
    chat = {"model": "simulated", "messages": [{"role": "user", "content": "a"}]}
    assert error_of(request(server.port, "POST", "/v1/chat/completions", chat)) == (
        422,
        "unsupported_parameter",
        "model",
    )
    completion = {"model": "simulated", "prompt": "a"}
    assert error_of(request(server.port, "POST", "/v1/completions", completion))[::2] == (422, "model")
    served = ["/v1/embeddings", "/v1/score", "/v1/rerank"]
    assert request(server.port, "GET", "/v1/models").json()["data"][0]["endpoints"] == served
    page = request(server.port, "GET", "/v1/contract").json()
    [model] = page["models"]
    assert [one["path"] for one in model["endpoints"]] == [*served, "/v1/tokenize", "/v1/detokenize"]
    assert model["output_modalities"] == ["embedding"]
    assert model["reading"] == {
        "pooling": "mean",
        "dimensions": DIMENSIONS,
        "min_dimensions": 8,
        "max_input_tokens": 4096,
        "scores_by": "cosine",
        "classifies_by": None,
        "labels": [],
    }
    assert (page["limits"]["inputs"]["value"], page["limits"]["input_tokens"]["value"]) == (2048, 4096)


def test_a_model_that_has_a_head_has_no_embeddings() -> None:
    with ServerThread("simulated", engine__pooling="rank") as ranking:
        assert error_of(ask(ranking)) == (422, "unsupported_parameter", "model")


def test_an_engine_that_reads_nothing_says_so() -> None:
    with ServerThread("simulated", engine__embeddings="off") as writing:
        assert error_of(ask(writing)) == (422, "unsupported_parameter", "model")


def test_a_repeated_call_is_answered_from_the_record(server: ServerThread) -> None:
    before = read_metrics(server.admin_port)
    first, second = (ask(server, headers={"Idempotency-Key": "embed-1"}) for _ in range(2))
    assert (second.body, second.headers["idempotent-replayed"]) == (first.body, "true")
    assert read_metrics(server.admin_port).since(before, "prompt_tokens_total") == len("the sea")
    assert error_of(ask(server, "other", {"Idempotency-Key": "embed-1"}))[:2] == (422, "idempotency_key_reuse")


def begin(server: ServerThread, name: str, headers: dict[str, str] | None = None) -> RawClient:
    """Sends the long call, and waits until some of it has been read."""
    num_before = num_pooled(server)
    client = RawClient(server.port)
    client.post(PATH, {"model": "simulated", "input": LONG_CALL}, {"X-Request-Id": name, **(headers or {})})
    wait_until(lambda: num_pooled(server) > num_before, "the engine works on it")
    return client


def num_pooled(server: ServerThread) -> int:
    """How many texts the engine has read."""
    return int(server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_pooled))


@pytest.mark.parametrize("is_reset", [False, True], ids=["closes", "resets"])
def test_a_client_that_goes_takes_all_its_texts_along(slow: ServerThread, is_reset: bool) -> None:
    before = slow.rest()
    slow.take_log()
    with begin(slow, f"gone-{is_reset}") as client:
        assert live_requests(slow.admin_port)[f"gone-{is_reset}"]["route"] == PATH
        client.reset() if is_reset else client.close()
        slow.wait_back(before)
    line = ended_requests(slow.take_log())[f"gone-{is_reset}"]
    assert (line["outcome"], line["route"]) == ("client_gone", PATH)
    assert line["num_prompt_tokens"] < 4000 * len(LONG_CALL)


def test_a_call_that_fills_the_engine_leaves_room_for_a_chat(slow: ServerThread) -> None:
    before = slow.rest()
    with begin(slow, "wide"):
        chat = {"model": "simulated", "messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
        assert request(slow.port, "POST", "/v1/chat/completions", chat).status == 200
        assert "wide" in live_requests(slow.admin_port)
    slow.wait_back(before)


def test_a_deadline_ends_the_whole_call(slow: ServerThread) -> None:
    before = slow.rest()
    answer = ask(slow, LONG_CALL, {"X-Deadline-Ms": "400"})
    assert answer.status == 504
    assert answer.json()["error"]["code"] in ("deadline_exceeded", "deadline_unreachable")
    assert error_of(ask(slow, LONG_CALL, first_token_deadline_ms=400))[0] == 504
    slow.wait_back(before)


def test_an_operator_ends_it_like_any_other(slow: ServerThread) -> None:
    before = slow.rest()
    with begin(slow, "aborted") as client:
        live = live_requests(slow.admin_port)["aborted"]["id"]
        assert request(slow.admin_port, "POST", f"/admin/v1/requests/{live}/abort").status in (200, 202)
        assert client.read_answer().status >= 400
    slow.wait_back(before)


def test_an_engine_that_dies_in_the_middle_is_told_and_nothing_is_left(slow: ServerThread) -> None:
    before = slow.rest()
    with begin(slow, "lost") as client:
        slow.kill_engine()
        answer = client.read_answer()
    assert error_of(answer) == (502, "engine_lost", None)
    assert answer.headers["x-should-retry"] == "true"
    wait_until(lambda: ask(slow).status == 200, "the next engine reads")
    slow.wait_back(before)


def test_a_key_pays_for_what_it_has_read(tmp_path: Any) -> None:
    key = add_key(tmp_path, "reader", quotas=Quotas(tokens_per_minute=100))
    with ServerThread("simulated", server__state_dir=str(tmp_path)) as running:
        assert ask(running).status == 401
        answer = ask(running, "x" * 40, bearing(key))
        assert answer.status == 200
        assert answer.headers["x-ratelimit-limit-tokens"] == "100"
        assert answer.headers["x-ratelimit-remaining-tokens"] == "60"
        assert ask(running, "x" * 60, bearing(key)).status == 200
        assert error_of(ask(running, "x", bearing(key)))[:2] == (429, "rate_limit_exceeded")
        metrics = read_metrics(running.admin_port)
        assert metrics.value("key_tokens_total", key="reader", kind="prompt") == 100
        assert metrics.value("request_success_total", finish_reason="read") == 2
