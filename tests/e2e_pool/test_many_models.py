"""Several models behind one server: each request goes to its model, and everything else is said of all of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import hex_pieces
from harness.pool_view import engine_rows, signal_engine, wait_engine
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread
from harness.server_view import engine_state, read_metrics, read_ready

pytestmark = pytest.mark.process

FILE = """
[[engines]]
name = "script"
kind = "scripted"
served_model_name = ["played", "also-played"]
replicas = 2

[[engines]]
name = "sim"
kind = "simulated"
served_model_name = ["counted"]
max_sequences = 4
max_output_tokens = 5
restart_wait_s = 3600
"""
NOBODY = b'{"model": "nobody", "messages": [{"role": "user", "content": "a"}]}'
SCRIPT = {"pieces": hex_pieces("played")}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", file=FILE) as running:
        yield running


def chat(server: ServerThread, model: str, **fields: Any) -> Answer:
    body = {"model": model, "messages": [{"role": "user", "content": "a"}], **fields}
    return request(server.port, "POST", "/v1/chat/completions", body)


def test_a_request_goes_to_the_engines_of_its_model(server: ServerThread) -> None:
    for name in ("played", "also-played"):
        answer = chat(server, name, x_script=SCRIPT)
        assert answer.json()["choices"][0]["message"]["content"] == "played"
        assert answer.json()["model"] == name
    counted = chat(server, "counted", max_tokens=3)
    assert counted.json()["choices"][0]["message"]["content"] == "bcd"
    assert counted.json()["system_fingerprint"] != answer.json()["system_fingerprint"]
    assert counted.headers["tidegate-served-revision"] == counted.json()["system_fingerprint"]
    rows = engine_rows(server.admin_port)
    assert sum(rows[f"script-{i}"]["submitted"] for i in (1, 2)) == 2
    assert {row["name"]: row["model"] for row in rows.values()} == {
        "script-1": "played",
        "script-2": "played",
        "sim": "counted",
    }


def test_each_model_has_its_own_rules(server: ServerThread) -> None:
    refused = chat(server, "counted", x_script=SCRIPT)
    assert (refused.status, refused.json()["error"]["param"]) == (400, "x_script")
    long = chat(server, "counted")
    assert (long.json()["usage"]["completion_tokens"], long.json()["choices"][0]["finish_reason"]) == (5, "length")
    stream = chat(server, "counted", stream=True, max_tokens=2)
    assert (read_stream(stream.body).content(0), read_stream(stream.body).num_done) == ("bc", 1)


@pytest.mark.parametrize("body", [NOBODY, b'{"model": 5}', b'{"messages": []}', b"{", b"[]"])
def test_what_names_no_model_is_answered_as_with_one(server: ServerThread, body: bytes) -> None:
    answer = request(server.port, "POST", "/v1/chat/completions", body)
    assert answer.status == (404 if body is NOBODY else 400)
    assert body is not NOBODY or answer.json()["error"]["code"] == "model_not_found"


def test_a_long_body_finds_its_model_too(server: ServerThread) -> None:
    text = "a" * 3000 + "b" * 20_000
    answer = request(server.port, "POST", "/v1/tokenize", {"prompt": text, "model": "counted"})
    assert answer.json()["count"] > 20_000


def test_lists_and_the_contract_name_all_models(server: ServerThread) -> None:
    listed = request(server.port, "GET", "/v1/models").json()["data"]
    assert [card["id"] for card in listed] == ["played", "also-played", "counted"]
    assert request(server.port, "GET", "/v1/models/counted").json()["id"] == "counted"
    assert request(server.port, "GET", "/v1/models/nobody").status == 404
    contract = request(server.port, "GET", "/v1/contract").json()
    described = contract["models"]
    assert (contract["default_model"], described[0]["limits"]) == ("played", {})
    assert contract["structured_output"] == described[0]["structured_output"]
    assert described[1]["structured_output"]["served"]
    assert contract["limits"]["max_output_tokens"]["value"] != 5
    assert described[1]["limits"]["max_output_tokens"]["value"] == 5
    assert all(contract["limits"][name] != limit for name, limit in described[1]["limits"].items())
    assert [(model["id"], model["aliases"]) for model in described] == [("played", ["also-played"]), ("counted", [])]
    assert [[engine["name"] for engine in model["engines"]] for model in described] == [["script-1", "script-2"], []]
    assert all(engine["revision"] == described[0]["revision"] for engine in described[0]["engines"])


def test_a_model_without_an_engine_is_not_ready_and_holds_up_no_other(server: ServerThread) -> None:
    signal_engine(server.admin_port, "sim")
    wait_engine(server.admin_port, "sim", ready=False)
    assert read_ready(server.admin_port).status == 503
    refused = chat(server, "counted")
    assert (refused.status, refused.json()["error"]["code"]) == (503, "engine_unavailable")
    assert chat(server, "played", x_script=SCRIPT).status == 200
    assert engine_state(server.admin_port)["ready"] is False
    up = read_metrics(server.admin_port)
    ups = [
        up.value("pool_engine_up", engine=name, model=model)
        for name, model in (("sim", "counted"), ("script-1", "played"))
    ]
    assert ups == [0, 1]
    again = request(server.admin_port, "POST", "/admin/v1/engines/sim/restart", {"wait_s": 60})
    assert again.json()["status"] == "ready"
    assert read_ready(server.admin_port).status == 200
    assert request(server.admin_port, "POST", "/admin/v1/engines/sim/drain").status == 422
    assert chat(server, "counted", max_tokens=1).status == 200
