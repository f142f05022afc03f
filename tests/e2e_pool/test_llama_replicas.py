"""Two processes of the bundled model: one text, whichever of them answers, and each with its share of the machine."""

import pytest

from harness.pool_view import act, engine_rows
from harness.raw_http import request
from harness.real_model import serve_bundled_model
from harness.server_view import engine_state

pytestmark = [pytest.mark.model, pytest.mark.process]


def test_replicas_of_a_real_model_write_the_same_and_share_the_memory() -> None:
    with serve_bundled_model(engine__replicas=2, engine__max_sequences=2, model__max_model_len=256) as server:
        body = {
            "model": server.model,
            "messages": [{"role": "user", "content": "Count from one to five."}],
            "temperature": 0,
            "max_tokens": 6,
        }
        texts = []
        for away in ("engine-1", "engine-2"):
            assert act(server.admin_port, away, "drain")[0] == 200
            answer = request(server.port, "POST", "/v1/chat/completions", body).json()
            texts.append((answer["choices"][0]["message"]["content"], answer["system_fingerprint"]))
            assert act(server.admin_port, away, "return")[0] == 200
        assert texts[0] == texts[1]
        rows = engine_rows(server.admin_port)
        assert [row["submitted"] for row in rows.values()] == [1, 1]
        assert len({row["process_id"] for row in rows.values()}) == 2
        memory = engine_state(server.admin_port)["model"]["memory"]
        assert [memory.count(f"{name}: weights") for name in rows] == [1, 1]
