"""What every stream promises, read from a whole server: order, statuses, whole characters, and equality with a whole
reply.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import Stream, read_stream
from harness.faults import Route, ask, hex_pieces
from harness.raw_http import RawClient, request
from harness.server_thread import ServerThread

pytestmark = pytest.mark.process

TEXT = "a\u00f1\u65e5\U0001f600\u2028\u0085e\u0301 end"
BYTES = [f"{byte:02x}" for byte in TEXT.encode()]
NUM_PINGS = 3


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", server__heartbeat_s=0.05, server__status_hold_s=0.3) as running:
        yield running


def streamed(server: ServerThread, route: Route, script: dict[str, Any], **fields: Any) -> Stream:
    answer = request(server.port, "POST", route.value, ask(route, script, stream=True, **fields))
    assert (answer.status, answer.is_complete) == (200, True)
    stream = read_stream(answer.body)
    assert not stream.findings
    return stream


def said(stream: Stream, route: Route, index: int = 0) -> str:
    return stream.content(index) if route is Route.CHAT else stream.text(index)


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
@pytest.mark.parametrize("has_usage", [True, False], ids=["usage", "no usage"])
def test_each_choice_ends_once_then_usage_then_done(
    server: ServerThread, route: Route, has_usage: bool
) -> None:  # SSE-3
    script = {"choices": [{"pieces": hex_pieces("a")}, {"pieces": hex_pieces("b", "b")}]}
    fields = {"stream_options": {"include_usage": True}} if has_usage else {}
    stream = streamed(server, route, {**script, "finish": "eos"}, n=2, **fields)
    assert [stream.finish_reasons(index) for index in (0, 1)] == [["stop"], ["stop"]]
    assert (stream.num_done, stream.is_done_last) == (1, True)
    *others, last = stream.chunks
    assert (last["choices"] == []) is has_usage
    assert all(chunk["choices"] for chunk in others)
    assert (stream.usage is not None) is has_usage


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
def test_a_failure_before_the_first_token_is_a_status(server: ServerThread, route: Route) -> None:  # SSE-5
    answer = request(server.port, "POST", route.value, ask(route, {"pieces": ["61"], "error_after": 0}, stream=True))
    assert (answer.status, answer.headers["content-type"]) == (502, "application/json")
    assert answer.json()["error"]["code"] == "engine_refused"


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
def test_characters_cut_over_tokens_arrive_whole(server: ServerThread, route: Route) -> None:  # SSE-2 SSE-7
    stream = streamed(server, route, {"pieces": BYTES, "finish": "eos"})
    assert said(stream, route) == TEXT
    assert "\ufffd" not in json.dumps(stream.chunks, ensure_ascii=False)


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
def test_a_stream_says_what_the_whole_reply_says(server: ServerThread, route: Route) -> None:  # SSE-9
    script = {"choices": [{"pieces": BYTES}, {"pieces": hex_pieces("b", "c", "stop here")}], "finish": "eos"}
    fields = {"n": 2, "stop": ["p he"]}
    stream = streamed(server, route, script, **fields)
    whole = request(server.port, "POST", route.value, ask(route, script, **fields)).json()
    for choice in whole["choices"]:
        text = choice["message"]["content"] if route is Route.CHAT else choice["text"]
        assert said(stream, route, choice["index"]) == text
        assert stream.finish_reasons(choice["index"]) == [choice["finish_reason"]]
    for member in ("id", "created", "model"):
        assert len({chunk[member] for chunk in stream.chunks}) == 1
    assert stream.chunks[0]["model"] == whole["model"]


def test_heartbeats_begin_after_the_status_and_stand_between_events(server: ServerThread) -> None:  # SSE-6
    """Silence before the first token: the status comes when its hold has passed, and only then the first comment."""
    script = {"pieces": hex_pieces("a", "b"), "delays_s": [1.0, 0.5], "finish": "eos"}
    with RawClient(server.port) as client:
        client.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True))
        answer = client.read_head()
        client.read_body(answer)
    assert (answer.status, answer.is_complete) == (200, True)
    assert answer.body.count(b": ping\n") >= NUM_PINGS
    opening, _, rest = answer.body.partition(b": ping\n")
    assert opening.endswith(b"\n\n"), "the opening chunks come before any comment"
    for part in rest.split(b": ping\n"):
        assert part == b"" or part.endswith(b"\n\n"), "no comment stands inside an event"
    assert b": ping\n\n" not in answer.body, "a blank line would make some clients dispatch an empty event"
    assert read_stream(answer.body).content() == "ab"
