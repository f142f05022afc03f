"""What engines on other machines are told of a request: its trace, the caller's id, and a name of its own."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.byte_folder import write_byte_folder
from harness.raw_http import RawClient, request
from harness.remote_stand_in import Speech
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.sglang_speech import SglangSpeech
from harness.stand_in_thread import StandInThread
from harness.vllm_speech import VllmSpeech

pytestmark = pytest.mark.process

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 3, "temperature": 0}
SPEECHES: dict[str, Callable[[], Speech]] = {"vllm-http": VllmSpeech, "sglang": SglangSpeech}


@pytest.fixture(scope="module", params=list(SPEECHES))
def far(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Any]]:
    """A server's port, and the stand-in of the engine behind it."""
    folder = write_byte_folder(tmp_path_factory.mktemp("tokenizer"))
    with (
        StandInThread(SPEECHES[request.param]()) as engine,
        ServerProcess(
            request.param, engine__url=engine.url, model__tokenizer=folder, model__served_model_name="m"
        ) as server,
    ):
        yield server.port, engine.stand_in


def heads_of(stand_in: Any, client_id: str) -> list[dict[str, str]]:
    return [head for head in stand_in.heads if head.get("x-client-request-id") == client_id]


def test_the_trace_and_the_callers_id_go_on(far: tuple[int, Any]) -> None:
    port, engine = far
    given = {"traceparent": PARENT, "tracestate": " congo=t61 , rojo=2", "X-Request-Id": "mine"}
    assert request(port, "POST", CHAT, BODY, given).status == 200
    [head] = heads_of(engine, "mine")
    assert head["traceparent"] == PARENT, "nothing is recorded here: the caller's span is the parent"
    assert head["tracestate"] == "congo=t61,rojo=2"


def test_what_is_not_well_formed_goes_no_further(far: tuple[int, Any]) -> None:
    port, engine = far
    given = {"traceparent": PARENT.upper(), "tracestate": "congo=t61", "X-Request-Id": "bad"}
    assert request(port, "POST", CHAT, BODY, given).status == 200
    [head] = heads_of(engine, "bad")
    assert "traceparent" not in head
    assert "tracestate" not in head


def test_two_live_requests_of_one_id_have_names_of_their_own_in_the_engine(far: tuple[int, Any]) -> None:  # SEC-19
    port, engine = far
    live = BODY | {"stream": True, "max_tokens": 2000, "ignore_eos": True, "n": 2}
    with RawClient(port) as one, RawClient(port) as other:
        for client in (one, other):
            client.post(CHAT, live, {"X-Request-Id": "shared"})
            client.read_head()
        wait_until(lambda: len(heads_of(engine, "shared")) == 4, "all choices have begun")
        names = [head["x-request-id"] for head in heads_of(engine, "shared")]
        assert len(set(names)) == 4
        assert "shared" not in " ".join(names)
        bodies = [body.get("request_id") or body.get("rid") for body in engine.requests[-4:]]
        assert sorted(names) == sorted(bodies), "vLLM takes the header for the id, and aborts by it"


def test_a_callers_id_is_never_a_header_of_its_own_making(far: tuple[int, Any]) -> None:
    port, engine = far
    num_before = len(engine.heads)
    answer = request(port, "POST", CHAT, BODY, {"X-Request-Id": "a: b", "X-Client-Request-Id": "evil", "X-Other": "1"})
    assert answer.status == 200
    [head] = engine.heads[num_before:]
    assert head["x-client-request-id"] == answer.headers["x-request-id"]
    assert "x-other" not in head
    assert "evil" not in json.dumps(head)
