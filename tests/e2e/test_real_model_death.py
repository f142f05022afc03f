"""The bundled model's engine is killed in mid-stream, and the next one says what it would have said."""

import pytest

from harness.event_stream import read_stream
from harness.raw_http import RawClient, request
from harness.real_model import serve_bundled_model

pytestmark = [pytest.mark.model, pytest.mark.process]

CHAT = "/v1/chat/completions"


def test_a_killed_model_is_loaded_again_and_answers_as_before() -> None:  # LIFE-2
    with serve_bundled_model() as server:
        body = {
            "model": server.model,
            "messages": [{"role": "user", "content": "Count from one to fifty."}],
            "temperature": 0,
            "max_tokens": 512,
        }
        short = {**body, "max_tokens": 4}
        before_death = request(server.port, "POST", CHAT, short).json()["choices"][0]["message"]["content"]
        before = server.rest()
        with RawClient(server.port) as client:
            client.post(CHAT, {**body, "stream": True})
            answer = client.read_head()
            while not read_stream(answer.body).content():
                answer.body += client.read_chunk() or b""
            server.kill_engine()
            client.read_body(answer)
        stream = read_stream(answer.body)
        assert ([error["code"] for error in stream.errors], stream.num_done) == (["engine_lost"], 0)
        assert not answer.is_complete
        server.wait_ready()
        again = request(server.port, "POST", CHAT, short).json()["choices"][0]["message"]["content"]
        assert again == before_death
        server.wait_back(before)
