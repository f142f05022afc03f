"""The prefix cache on the bundled model, in both layouts of its memory: counts of tokens, never times."""

from collections.abc import Iterator

import pytest

from harness.raw_http import RawClient
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread, wait_until
from harness.server_view import Metrics, read_metrics

pytestmark = pytest.mark.model

COMPLETION = "/v1/completions"
NUM_PREFIX = 500
PATIENCE_S = 240.0
"""Reading 500 tokens takes ages where many others use the machine."""
LAYOUTS = {
    "per sequence": {"engine__kv_layout": "per_sequence", "engine__max_sequences": 4},
    "one pool": {"engine__kv_layout": "unified", "engine__max_sequences": 4},
    "repeatable": {"engine__repeatable": True, "engine__max_sequences": 4},
}


@pytest.fixture(scope="module", params=LAYOUTS)
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serve_bundled_model(**LAYOUTS[request.param]) as running:
        yield running
        assert running.rest().blocks_used == 0


def metrics(server: ServerThread) -> Metrics:
    return read_metrics(server.admin_port)


def prefix(seed: int) -> list[int]:
    return [1000 + (seed * 7919 + i * 104_729) % 30_000 for i in range(NUM_PREFIX)]


def ask(server: ServerThread, prompt: list[int], **members: object) -> tuple[int, int, list[int]]:
    """Returns how many tokens were found and how many computed, and the answer's."""
    before = metrics(server)
    body = {"model": server.model, "prompt": prompt, "max_tokens": 4, "temperature": 0, "return_token_ids": True}
    with RawClient(server.port, timeout_s=PATIENCE_S) as client:
        client.post(COMPLETION, body | members)
        told = client.read_answer("POST").json()
    num_computed = int(metrics(server).since(before, "engine_prefill_tokens_total"))
    num_cached = told["usage"]["prompt_tokens_details"]["cached_tokens"]
    return num_cached, num_computed, told["choices"][0]["token_ids"]


def test_a_second_request_with_the_same_500_tokens_computes_only_what_is_new(server: ServerThread) -> None:
    first, second = [*prefix(1), 5, 6, 7], [*prefix(1), 8, 9, 10, 11]
    assert ask(server, first)[:2] == (0, NUM_PREFIX + 3)
    found, computed, token_ids = ask(server, second)
    assert (found, computed) == (NUM_PREFIX, 4)
    if server.settings.engine.repeatable:
        salted = ask(server, second, cache_salt="another")
        assert salted == (0, NUM_PREFIX + 4, token_ids), "not under another salt, and the same to the last token"


def test_so_does_one_whose_first_caller_went_away_half_way(server: ServerThread) -> None:
    if server.settings.engine.repeatable:
        return
    prompt = prefix(2)
    start = metrics(server)
    with RawClient(server.port) as client:
        client.post(COMPLETION, {"model": server.model, "prompt": prompt, "max_tokens": 1, "stream": True})
        wait_until(
            lambda: metrics(server).since(start, "engine_prefill_tokens_total") > 0, "some of it is read", PATIENCE_S
        )
    wait_until(lambda: metrics(server).value("kv_blocks", state="used") == 0, "the engine has let go", PATIENCE_S)
    num_read = int(metrics(server).since(start, "engine_prefill_tokens_total"))
    num_found = min(num_read, NUM_PREFIX - 1)
    assert num_found > 0
    assert ask(server, prompt)[:2] == (num_found, NUM_PREFIX - num_found)
