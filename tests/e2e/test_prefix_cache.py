"""What callers and operators see of the prefix cache: what is found, by whom, what it saves, and how it goes."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.keys import add_key, bearing
from harness.raw_http import RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import Metrics, engine_state, read_metrics

pytestmark = pytest.mark.process

COMPLETION, CHAT = "/v1/completions", "/v1/chat/completions"
PREFIX = "The tide rises, the tide falls, the twilight darkens, the curlew calls; " * 7


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    """An engine whose text depends on everything that it was told, at the price of its declared time."""
    with ServerThread("simulated", engine__simulated_model="hash") as running:
        yield running
        assert running.rest().blocks_used == 0


def ask(server: ServerThread, prompt: str, headers: dict[str, str] | None = None, **members: Any) -> dict[str, Any]:
    body = {"model": server.model, "prompt": prompt, "max_tokens": 4, "temperature": 0, **members}
    answer = request(server.port, "POST", COMPLETION, body, headers=headers)
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.json()
    return told


def cached(told: dict[str, Any]) -> int:
    found: int = told["usage"]["prompt_tokens_details"]["cached_tokens"]
    return found


def fresh(length: int = 500) -> str:
    """Returns a text that no test has used."""
    return (os.urandom(8).hex() + PREFIX)[:length]


def metrics(server: ServerThread) -> Metrics:
    return read_metrics(server.admin_port)


def test_a_second_request_computes_only_what_is_new(server: ServerThread) -> None:
    prefix = fresh()
    assert cached(ask(server, prefix + " and a first question")) == 0
    before = metrics(server)
    told = ask(server, prefix + " and a second one")
    num_common = len(prefix + " and a ")
    assert cached(told) == num_common
    after = metrics(server)
    num_prompt = told["usage"]["prompt_tokens"]
    assert after.since(before, "engine_prefill_tokens_total") == num_prompt - num_common
    assert after.since(before, "prefix_cache_queries_total") == num_prompt
    assert after.since(before, "prefix_cache_hits_total") == num_common
    assert after.value("kv_blocks", state="cached") > 0


def test_the_text_is_what_it_is_without_a_cache(server: ServerThread) -> None:
    prompts = [fresh() for _ in range(3)]
    prompts = [prompt + end for prompt in prompts for end in ("", " a", " a", " another question")]
    with ServerThread("simulated", engine__simulated_model="hash", engine__prefix_cache=False) as without:
        for prompt in prompts:
            told, expected = ask(server, prompt, max_tokens=20), ask(without, prompt, max_tokens=20)
            assert told["choices"] == expected["choices"]
            assert cached(expected) == 0
        assert engine_state(without.admin_port)["gauges"]["blocks_cached"] == 0


def test_the_next_turn_finds_the_answer_too_and_the_same_prompt_all_but_its_end(server: ServerThread) -> None:
    prompt = fresh(160)
    told = ask(server, prompt, max_tokens=40, return_token_ids=True)
    choice = told["choices"][0]
    ids = [*choice["prompt_token_ids"], *choice["token_ids"]]
    body = {"model": server.model, "prompt": [*ids, *b"And then?"], "max_tokens": 1}
    # The last token of an answer is not computed when it ends.
    assert cached(request(server.port, "POST", COMPLETION, body).json()) == len(ids) - 1
    assert cached(ask(server, prompt)) == len(prompt) - 1


def test_a_stream_tells_it_in_its_usage(server: ServerThread) -> None:
    prompt = fresh(320)
    ask(server, prompt + "?")
    body = {"model": server.model, "prompt": prompt + "!", "max_tokens": 2, "stream": True}
    answer = request(server.port, "POST", COMPLETION, body | {"stream_options": {"include_usage": True}})
    usage = [chunk["usage"] for chunk in read_stream(answer.body).chunks if chunk.get("usage")]
    assert [one["prompt_tokens_details"]["cached_tokens"] for one in usage] == [320]


def test_several_choices_and_prompts_count_each_prompt_once(server: ServerThread) -> None:
    prompt = fresh(320)
    ask(server, prompt + "?")
    assert cached(ask(server, prompt + "!", n=3)) == 320
    body = {"model": server.model, "prompt": [prompt + "a", prompt + "b"], "max_tokens": 2}
    assert cached(request(server.port, "POST", COMPLETION, body).json()) == 640


def test_prompt_scores_are_computed_from_the_beginning(server: ServerThread) -> None:
    prompt = fresh(100)
    ask(server, prompt)
    told = ask(server, prompt, prompt_logprobs=0)
    assert (cached(told), len(told["choices"][0]["prompt_logprobs"])) == (0, 100)


def test_what_was_read_before_an_abort_is_found() -> None:
    """The first caller goes away while its prompt of 4,000 tokens is being read."""
    costs = {"engine__simulated_cost": True, "engine__prefill_chunk_tokens": 64, "engine__max_step_tokens": 64}
    with ServerThread("simulated", engine__simulated_model="hash", **costs) as running:
        prompt = fresh(16) + PREFIX * 6
        prompt = prompt[:3000]
        with RawClient(running.port) as client:
            client.post(COMPLETION, {"model": running.model, "prompt": prompt, "max_tokens": 1, "stream": True})
            wait_until(lambda: metrics(running).value("engine_prefill_tokens_total") >= 640, "some of it is read")
        wait_until(lambda: metrics(running).value("kv_blocks", state="used") == 0, "the engine has let go")
        before = metrics(running)
        num_read = int(before.value("engine_prefill_tokens_total"))
        assert 640 <= num_read < 3000
        assert cached(ask(running, prompt)) == num_read
        assert metrics(running).since(before, "engine_prefill_tokens_total") == 3000 - num_read


def test_nobody_finds_what_was_read_under_another_salt(server: ServerThread) -> None:  # SEC-21
    prompt = fresh()
    for salt, expected in ((None, 0), ("a", 0), ("b", 0), ("a", 499), (None, 499), ("b", 499), ("ab", 0)):
        assert cached(ask(server, prompt, cache_salt=salt)) == expected, salt


def test_nobody_finds_what_was_read_under_another_key() -> None:  # SEC-21
    with ServerThread("simulated", engine__simulated_model="hash") as running:
        state_dir = running.settings.server.state_dir
        assert state_dir is not None
        first, second = (bearing(add_key(state_dir, name)) for name in ("first", "second"))
        wait_until(lambda: request(running.port, "GET", "/v1/models").status == 401, "closed for everybody")
        prompt = fresh()
        for key, salt, expected in (
            (first, None, 0),
            (second, None, 0),
            (first, None, 499),
            (second, None, 499),
            (first, "same", 0),
            (second, "same", 0),
            (second, "same", 499),
        ):
            assert cached(ask(running, prompt, headers=key, cache_salt=salt)) == expected


def test_a_flush_frees_what_no_request_holds_and_says_how_much(server: ServerThread) -> None:
    prompt = fresh(160)
    ask(server, prompt, max_tokens=1)
    num_cached = engine_state(server.admin_port)["gauges"]["blocks_cached"]
    assert num_cached >= 10
    assert request(server.admin_port, "POST", "/admin/v1/cache/flush", {}).json()["freed_blocks"] == num_cached
    wait_until(lambda: engine_state(server.admin_port)["gauges"]["blocks_cached"] == 0, "the next step tells")
    assert cached(ask(server, prompt)) == 0
