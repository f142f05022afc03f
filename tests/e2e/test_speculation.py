"""Guesses behind a whole server: streams, stop strings and usage are those of a server without; metrics count them."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import request
from harness.server_thread import ServerThread

PATH = "/v1/completions"
PERIOD = "".join(chr(code) for code in range(65, 91))
WISHES: dict[str, dict[str, Any]] = {
    "to the budget": {"max_tokens": 30},
    "a stop string inside a run": {"max_tokens": 60, "stop": ["KL"]},
    "a stop string kept": {"max_tokens": 60, "stop": ["MNOP"], "include_stop_str_in_output": True},
    "a stop id": {"max_tokens": 60, "stop_token_ids": [ord("S")]},
    "log-probabilities": {"max_tokens": 25, "logprobs": 2},
    "sampled": {"max_tokens": 30, "temperature": 1.0, "seed": 3},
    "two choices": {"max_tokens": 20, "n": 2, "temperature": 1.0, "seed": 4},
}


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ServerThread, ServerThread]]:
    with (
        ServerThread("simulated") as ordinary,
        ServerThread("simulated", engine__speculative="prompt_lookup") as guessing,
    ):
        yield ordinary, guessing
        assert guessing.baseline().blocks_used == 0


def told(server: ServerThread, wish: dict[str, Any]) -> tuple[Any, ...]:
    """Returns what is said whole, and what is said in a stream."""
    body = {"model": server.model, "prompt": PERIOD + PERIOD[:3], "temperature": 0, **wish}
    whole = request(server.port, "POST", PATH, body)
    assert whole.status == 200, whole.body
    answer = whole.json()
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    stream = read_stream(request(server.port, "POST", PATH, asked).body)
    assert (stream.findings, stream.num_done) == ([], 1)
    texts = [stream.text(index) for index in range(wish.get("n", 1))]
    assert texts == [choice["text"] for choice in answer["choices"]]
    return answer["choices"], answer["usage"], stream.usage, texts


@pytest.mark.parametrize("wish", WISHES)
def test_a_server_that_guesses_says_the_same(servers: tuple[ServerThread, ServerThread], wish: str) -> None:
    ordinary, guessing = servers
    assert told(guessing, WISHES[wish]) == told(ordinary, WISHES[wish])


def counted(server: ServerThread, name: str) -> float:
    """Returns one counter of the engine's."""
    server.rest()
    text = request(server.admin_port, "GET", "/metrics").body.decode()
    line = next(line for line in text.splitlines() if line.startswith(f"tidegate_{name}_total "))
    return float(line.split()[1])


def test_guesses_are_counted(servers: tuple[ServerThread, ServerThread]) -> None:
    ordinary, guessing = servers
    told(guessing, WISHES["to the budget"])
    told(ordinary, WISHES["to the budget"])
    accepted, drafted = (counted(guessing, f"spec_decode_num_{kind}_tokens") for kind in ("accepted", "draft"))
    assert 0 < accepted <= drafted
    assert counted(guessing, "spec_decode_num_drafts") < counted(guessing, "engine_output_tokens") - accepted
    assert counted(ordinary, "spec_decode_num_drafts") == 0
