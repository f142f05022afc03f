"""Engines of different revisions under one name: refused, unless the operator says that this is a roll-out."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread

pytestmark = pytest.mark.process

FILE = """
[engine]
kind = "simulated"
[[engines]]
name = "old"
simulated_model = "successor"
served_model_name = ["m"]
[[engines]]
name = "new"
simulated_model = "hash"
served_model_name = ["m"]
[pool]
rolling = {rolling}
"""


def complete(server: ServerThread, **fields: Any) -> Answer:
    body = {"model": "m", "prompt": "a", "max_tokens": 3, "temperature": 0, **fields}
    return request(server.port, "POST", "/v1/completions", body)


def test_two_revisions_under_one_name_do_not_start() -> None:
    server = ServerProcess("simulated", file=FILE.format(rolling="false"))
    with pytest.raises(AssertionError, match="another revision than the rest of its pool"):
        server.__enter__()
    assert server.wait() == 1


def test_while_rolling_every_answer_names_the_revision_that_gave_it() -> None:
    with ServerThread("simulated", file=FILE.format(rolling="true")) as server:
        engines = request(server.port, "GET", "/v1/contract").json()["models"][0]["engines"]
        revisions = {engine["name"]: engine["revision"] for engine in engines}
        assert len(set(revisions.values())) == 2
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda number: complete(server, seed=number), range(24)))
            batches = list(threads.map(lambda _: complete(server, prompt=["a"] * 4, n=2), range(8)))
            streams = list(threads.map(lambda _: complete(server, stream=True), range(8)))
        seen = set()
        for answer in [*answers, *batches]:
            revision = answer.headers["tidegate-served-revision"]
            assert answer.json()["system_fingerprint"] == revision
            is_old = {choice["text"] == "bcd" for choice in answer.json()["choices"]}
            assert is_old == {revision == revisions["old"]}, "one answer comes from one revision"
            seen.add(revision)
        assert seen == set(revisions.values())
        for answer in streams:
            stream, revision = read_stream(answer.body), answer.headers["tidegate-served-revision"]
            assert {chunk["system_fingerprint"] for chunk in stream.chunks} == {revision}
            assert (stream.text(0) == "bcd") == (revision == revisions["old"])
