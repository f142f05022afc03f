"""One request over a real socket: what is measured of a right answer, and what a wrong one is called."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from harness.crooked_server import CrookedServer
from tidegate.loadtest import preflight
from tidegate.loadtest.ask import Asker
from tidegate.loadtest.http_client import HttpClient
from tidegate.loadtest.preflight import CannotMeasureError, find_model, probe
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.session import Turn
from tidegate.loadtest.target import Target, TargetError, body_of, check_key, read_base_url, request_of
from tidegate.loadtest.word_text import WordRate
from tidegate.system import SystemClock

CLOCK = SystemClock()
TURN = Turn(max_tokens=5, messages=({"role": "user", "content": "hi"},), num_prompt_tokens=1)


@pytest.fixture
def server() -> Iterator[CrookedServer]:
    with CrookedServer("right", "other") as running:
        yield running


def target_of(server: CrookedServer, model: str = "", **changes: Any) -> Target:
    return Target(label="server", base_url=server.url, model=model, **changes)


async def _ask(target: Target, count: int, timeout_s: float) -> list[tuple[Sample, str]]:
    answers = []
    async with HttpClient(target.origin, CLOCK) as client:
        for _ in range(count):
            sample = Sample(group="all", due_at=CLOCK.now(), sent_at=CLOCK.now())
            text = await Asker(target, client, CLOCK, timeout_s).ask(TURN, list(TURN.messages), sample)
            answers.append((sample, text))
    return answers


def ask(target: Target, count: int = 1, timeout_s: float = 30.0) -> list[tuple[Sample, str]]:
    return asyncio.run(_ask(target, count, timeout_s))


@pytest.mark.parametrize("model", ["right", "until it closes", "early hints", "closes quietly"])
def test_an_answer_is_measured(server: CrookedServer, model: str) -> None:
    ((sample, text),) = ask(target_of(server, model))
    assert (sample.ending, sample.detail, text, sample.finish_reason) == ("done", "", "Hello world", "stop")
    assert (sample.num_tokens, sample.num_prompt_tokens, sample.num_cached_tokens) == (5, 20, 16)
    assert sample.is_counted_by_server
    assert len(sample.token_at) == 2
    assert sample.due_at <= sample.sent_at <= sample.token_at[0] <= sample.token_at[1] <= sample.ended_at


def test_without_usage_pieces_are_counted(server: CrookedServer) -> None:
    ((sample, _),) = ask(target_of(server, "no usage"))
    assert (sample.num_tokens, sample.num_prompt_tokens, sample.is_counted_by_server) == (2, None, False)


@pytest.mark.parametrize(
    ("model", "ending", "detail"),
    [
        ("cut", "stream_cut", "closed inside the answer"),
        ("cut without a length", "stream_cut", "the body ended after 1 pieces"),
        ("garbage", "garbage", "hello"),
        ("a page", "garbage", "<html>"),
        ("not streamed", "not_streamed", "Hello"),
        ("busy", "http_503", "too much"),
        ("error event", "stream_error", "died"),
        ("nothing", "no_connection", "closed before an answer"),
        ("none of it", "http_404", "no such model"),
    ],
)
def test_what_goes_wrong_is_called_by_its_kind(server: CrookedServer, model: str, ending: str, detail: str) -> None:
    ((sample, _),) = ask(target_of(server, model))
    assert sample.ending == ending
    assert detail in sample.detail
    assert sample.is_error
    assert sample.ended_at >= sample.sent_at


def test_an_empty_answer_is_one_without_a_first_token(server: CrookedServer) -> None:
    ((sample, text),) = ask(target_of(server, "empty"))
    assert (sample.ending, sample.ttft_s, text) == ("done", None, "")


def test_who_answers_too_late_is_left(server: CrookedServer) -> None:
    ((sample, _),) = ask(target_of(server, "silent"), timeout_s=0.1)
    assert (sample.ending, sample.detail) == ("timeout", "after 0.1 s")


def test_a_server_that_is_not_there_is_no_connection() -> None:
    with CrookedServer() as gone:
        target = target_of(gone, "right")
    ((sample, _),) = ask(target)
    assert sample.ending == "no_connection"


def test_connections_are_used_again_and_replaced_when_the_server_closed_them(server: CrookedServer) -> None:
    assert {sample.ending for sample, _ in ask(target_of(server, "right"), count=5)} == {"done"}
    assert server.num_connections == 1
    assert {sample.ending for sample, _ in ask(target_of(server, "closes quietly"), count=5)} == {"done"}
    assert server.num_connections == 6


def test_a_cancelled_request_drops_its_connection_and_stays_unfinished(server: CrookedServer) -> None:
    async def leave() -> Sample:
        target = target_of(server, "silent")
        sample = Sample(group="all", due_at=CLOCK.now(), sent_at=CLOCK.now())
        async with HttpClient(target.origin, CLOCK) as client:
            asking = asyncio.create_task(Asker(target, client, CLOCK, 60.0).ask(TURN, [], sample))
            while not server.bodies:
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        return sample

    assert asyncio.run(leave()).ending == "unfinished"


def test_what_is_asked_is_what_was_ordered() -> None:
    target = Target(label="x", base_url="https://[::1]:8443/a/v1", model="m", api_key="k", extra={"ignore_eos": True})
    assert target.origin == ("https", "::1", 8443)
    body = body_of(target, TURN, list(TURN.messages))
    data = request_of(target, "POST", target.path, body)
    for words in (b"POST /a/v1/chat/completions HTTP/1.1", b"Host: [::1]:8443", b"Authorization: Bearer k"):
        assert words in data
    for words in (
        b'"stream":true',
        b'"include_usage":true',
        b'"max_tokens":5',
        b'"ignore_eos":true',
        b'"temperature":0',
    ):
        assert words in body
    text = Target(label="x", base_url="http://h/v1", model="m", api="completions")
    assert b'"prompt":"hi"' in body_of(text, TURN, list(TURN.messages))
    assert text.path == "/v1/completions"
    assert b"Host: h\r\n" in request_of(text, "GET", text.models_path)
    prompt = Turn(max_tokens=1, prompt="once", num_prompt_tokens=1)
    assert b'"content":"once"' in body_of(target, prompt, [])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://h/v1/", "http://h/v1"),
        ("https://h/api", "https://h/api/v1"),
        ("https://h/x/v1beta", "https://h/x/v1beta"),
    ],
)
def test_an_address_ends_in_its_version(text: str, address: str) -> None:
    assert read_base_url(text) == address


@pytest.mark.parametrize(
    "text", ["ftp://h", "http://", "http://h:0/v1", "http://u:p@h/v1", "http://h/v1?x=1", "http://h:x", "http://h\n"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(TargetError):
        read_base_url(text)


def test_a_key_stands_in_a_header_or_is_refused() -> None:
    assert (check_key(None), check_key(""), check_key("abc")) == (None, None, "abc")
    for key in ("a b", "é", "a\r\nX: y"):
        with pytest.raises(TargetError):
            check_key(key)


def find(target: Target) -> str:
    """Returns the model that is found."""

    async def work() -> Target:
        async with HttpClient(target.origin, CLOCK) as client:
            return await find_model(target, client)

    return asyncio.run(work()).model


def count_words(target: Target) -> WordRate:
    async def work() -> WordRate:
        async with HttpClient(target.origin, CLOCK) as client:
            return await probe(target, client, CLOCK)

    return asyncio.run(work())


def test_the_first_model_that_a_server_names_is_taken_and_words_are_counted(server: CrookedServer) -> None:
    assert find(target_of(server)) == "right"
    assert find(target_of(server, "mine")) == "mine"
    assert not count_words(target_of(server, "right")).is_measured, "it counts all prompts alike"
    assert [len(body["messages"][0]["content"].split()) for body in server.bodies] == [16, 96]
    assert not count_words(target_of(server, "no usage")).is_measured


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("none", "answers 404: no such model .no such route or model"),
        ("busy", "answers 503: too much"),
        ("cut", "the stream ended before the answer did"),
        ("garbage", "was not HTTP"),
        ("nothing", "could not be reached"),
    ],
)
def test_a_server_that_cannot_be_loaded_is_told_before_the_load(server: CrookedServer, model: str, says: str) -> None:
    with pytest.raises(CannotMeasureError, match=says):
        count_words(target_of(server, model))


def test_a_server_without_models_or_with_keys_is_told() -> None:
    with CrookedServer() as empty, pytest.raises(CannotMeasureError, match="names no model: say one with --model"):
        find(target_of(empty))
    with pytest.raises(CannotMeasureError, match="no connection"):
        find(target_of(empty))
    with CrookedServer("right", key="k") as guarded:
        with pytest.raises(CannotMeasureError, match=r"answers 401: no key \(give the server's key with --api-key"):
            find(target_of(guarded))
        assert find(target_of(guarded, api_key="k")) == "right"


def test_a_head_without_an_end_is_no_http(server: CrookedServer) -> None:
    ((sample, _),) = ask(target_of(server, "endless head"))
    assert sample.ending == "garbage"
    assert "head of more than" in sample.detail


def test_of_a_refusal_and_a_list_only_the_beginning_is_read(
    server: CrookedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((sample, _),) = ask(target_of(server, "a long refusal"))
    assert sample.ending == "http_503"
    assert sample.detail.startswith('{"error": {"message": "mmm')
    monkeypatch.setattr(preflight, "MAX_LIST_BYTES", 0)
    with pytest.raises(CannotMeasureError, match="names no model"):
        find(target_of(server))


def test_who_answers_the_first_request_too_late_is_left(server: CrookedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "PREFLIGHT_TIMEOUT_S", 0.1)
    with pytest.raises(CannotMeasureError, match="longer than --timeout: after"):
        count_words(target_of(server, "silent"))
