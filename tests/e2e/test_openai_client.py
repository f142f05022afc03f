"""The official `openai` client, sync and async: whole answers, streams, errors and retries, as its users see them."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from harness.raw_http import request
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread

MESSAGES: Any = [{"role": "user", "content": "Name three colours."}]
SAY_ABC = {"x_script": {"pieces": ["61", "62", "63"], "finish": "eos"}}
ENDLESS = {"x_script": {"pieces": ["61"], "repeat": 100_000, "delays_s": [0.01], "finish": "eos"}}


@pytest.fixture(scope="module")
def scripted() -> Iterator[ServerThread]:
    with ServerThread("scripted", model__served_model_name=("first", "org/second:q4")) as running:
        yield running


@pytest.fixture(scope="module", params=["simulated", pytest.param("llama", marks=pytest.mark.model)])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serve_bundled_model() if request.param == "llama" else ServerThread("simulated") as running:
        yield running


def connect(server: ServerThread, max_retries: int = 0) -> OpenAI:
    return OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=max_retries, timeout=60)


@pytest.fixture
def client(server: ServerThread) -> Iterator[OpenAI]:
    with connect(server) as connected:
        yield connected


@pytest.fixture
def player(scripted: ServerThread) -> Iterator[OpenAI]:
    with connect(scripted) as connected:
        yield connected


def ask(client: OpenAI, server: ServerThread, **members: Any) -> ChatCompletion:
    given = {"model": server.model, "messages": MESSAGES, "temperature": 0, "max_tokens": 12, **members}
    answer: ChatCompletion = client.chat.completions.create(**given)
    return answer


def listen(client: OpenAI, server: ServerThread, **members: Any) -> list[ChatCompletionChunk]:
    stream: Any = ask(client, server, stream=True, **members)
    with stream:
        return list(stream)


def text_of(chunks: list[ChatCompletionChunk], index: int = 0) -> str:
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    return "".join(choice.delta.content or "" for choice in choices)


def a_stop(client: OpenAI, server: ServerThread) -> str:
    """Returns characters that the answer holds: the client's helpers take only answers that were not cut by length."""
    return (ask(client, server).choices[0].message.content or "")[5:7]


def test_a_whole_answer_has_every_member_that_the_client_knows(client: OpenAI, server: ServerThread) -> None:
    answer = ask(client, server)
    choice = answer.choices[0]
    assert (answer.object, answer.model, answer.service_tier) == ("chat.completion", server.model, "default")
    assert (choice.index, choice.message.role, choice.finish_reason) == (0, "assistant", "length")
    assert answer.id.startswith("chatcmpl-")
    assert answer.system_fingerprint
    assert choice.message.content
    assert choice.message.refusal is None
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens is not None


def test_a_stream_says_what_the_whole_answer_says(client: OpenAI, server: ServerThread) -> None:
    chunks = listen(client, server, stream_options={"include_usage": True})
    whole = ask(client, server)
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_async_client_gets_the_same(client: OpenAI, server: ServerThread) -> None:
    async def ask_both() -> tuple[ChatCompletion, list[ChatCompletionChunk]]:
        given: dict[str, Any] = {"model": server.model, "messages": MESSAGES, "temperature": 0, "max_tokens": 12}
        async with AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as connected:
            whole = await connected.chat.completions.create(**given)
            stream = await connected.chat.completions.create(**given, stream=True)
            async with stream:
                return whole, [chunk async for chunk in stream]

    whole, chunks = asyncio.run(ask_both())
    expected = ask(client, server).choices[0].message.content
    assert (whole.choices[0].message.content, text_of(chunks)) == (expected, expected)


def test_many_async_streams_at_once(server: ServerThread) -> None:
    async def ask_all() -> list[str]:
        async with AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as connected:

            async def one() -> str:
                given: dict[str, Any] = {"model": server.model, "messages": MESSAGES, "temperature": 0}
                stream = await connected.chat.completions.create(**given, max_tokens=4, stream=True)
                async with stream:
                    return text_of([chunk async for chunk in stream])

            return await asyncio.gather(*(one() for _ in range(16)))

    assert len(set(asyncio.run(ask_all()))) <= 2, "near ties may fall either way in other batches, no more"


def test_the_clients_own_accumulator_gives_the_whole_answer(client: OpenAI, server: ServerThread) -> None:
    members: Any = {"n": 2, "logprobs": True, "top_logprobs": 2, "stop": a_stop(client, server)}
    state = ChatCompletionStreamState()
    for chunk in listen(client, server, stream_options={"include_usage": True}, **members):
        state.handle_chunk(chunk)
    told = state.get_final_completion()
    whole = ask(client, server, **members)
    assert len(told.choices) == 2
    for choice, expected in zip(told.choices, whole.choices, strict=True):
        assert choice.message.content == expected.message.content
        assert choice.finish_reason == expected.finish_reason
        assert choice.logprobs is not None
        assert choice.logprobs == expected.logprobs
    assert told.usage is not None
    assert whole.usage is not None
    assert told.usage.total_tokens == whole.usage.total_tokens


def test_the_stream_helper_sends_its_events(client: OpenAI, server: ServerThread) -> None:
    members: Any = {"max_tokens": 12, "stop": a_stop(client, server)}
    given: dict[str, Any] = {"model": server.model, "messages": MESSAGES, "temperature": 0, **members}
    with client.chat.completions.stream(**given) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds[0] == "chunk"
    assert "content.delta" in kinds
    assert kinds[-1] == "content.done"
    assert final.choices[0].message.content == ask(client, server, **members).choices[0].message.content


def test_logprobs_are_one_entry_a_token_and_their_bytes_are_the_text(client: OpenAI, server: ServerThread) -> None:
    answer = ask(client, server, logprobs=True, top_logprobs=3)
    assert answer.choices[0].logprobs is not None
    entries = answer.choices[0].logprobs.content or []
    assert len(entries) == 12
    assert b"".join(bytes(entry.bytes or []) for entry in entries).decode() == answer.choices[0].message.content
    for entry in entries:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob <= 0
        assert entry.top_logprobs[0].token == entry.token, "at temperature 0 the chosen token is the likeliest"
        assert entry.top_logprobs[0].logprob == entry.logprob


def test_stop_and_the_extensions_of_extra_body(client: OpenAI, server: ServerThread) -> None:
    whole = ask(client, server, extra_body={"return_token_ids": True})
    content = whole.choices[0].message.content or ""
    stop = content[5:7]
    stopped = ask(client, server, stop=[stop]).choices[0]
    assert (stopped.message.content, stopped.finish_reason) == (content[: content.index(stop)], "stop")
    assert stopped.model_extra == {"stop_reason": stop}
    third = whole.choices[0].model_extra["token_ids"][2]  # type: ignore[index]
    by_id = ask(client, server, extra_body={"stop_token_ids": [third]}).choices[0]
    assert by_id.model_extra == {"stop_reason": third}
    only = ask(client, server, max_tokens=3, extra_body={"allowed_token_ids": [third], "top_k": 1, "min_p": 0.1})
    assert only.usage is not None
    assert only.usage.completion_tokens == 3


def test_a_completion_echoes_its_prompt_with_logprobs(client: OpenAI, server: ServerThread) -> None:
    given: dict[str, Any] = {"model": server.model, "prompt": "The sky is", "max_tokens": 3, "temperature": 0}
    answer = client.completions.create(**given, echo=True, logprobs=2)
    choice = answer.choices[0]
    assert choice.text.startswith("The sky is")
    assert choice.logprobs is not None
    assert choice.logprobs.token_logprobs is not None
    assert choice.logprobs.token_logprobs[0] is None
    assert answer.usage is not None
    assert len(choice.logprobs.tokens or []) == answer.usage.total_tokens
    assert "".join(choice.logprobs.tokens or []) == choice.text
    stream: Any = client.completions.create(**given, echo=True, stream=True)
    with stream:
        assert "".join(part.choices[0].text for part in stream) == choice.text


def test_raw_answers_show_the_headers(client: OpenAI, server: ServerThread) -> None:
    given: dict[str, Any] = {"model": server.model, "messages": MESSAGES, "max_tokens": 2, "temperature": 0}
    named = {"X-Request-Id": "my-trace.1"}
    raw = client.chat.completions.with_raw_response.create(**given, extra_headers=named, extra_body={"colour": 1})
    assert raw.status_code == 200
    assert raw.headers["x-request-id"] == "my-trace.1"
    assert raw.headers["tidegate-contract"].startswith("1.")
    assert raw.headers["tidegate-ignored-fields"] == "colour"
    assert raw.parse().system_fingerprint == raw.headers["tidegate-served-revision"]
    with client.chat.completions.with_streaming_response.create(**given, stream=True) as streaming:
        assert streaming.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert streaming.headers["cache-control"] == "no-cache"
        assert "content-length" not in streaming.headers
        lines = [line for line in streaming.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[0].removeprefix("data: "))["choices"][0]["delta"] == {"role": "assistant", "content": ""}


def test_models_are_listed_and_found_by_name(player: OpenAI) -> None:
    assert [model.id for model in player.models.list()] == ["first", "org/second:q4"]
    found = player.models.retrieve("org/second:q4")
    assert (found.id, found.object, found.owned_by) == ("org/second:q4", "model", "tidegate")
    with pytest.raises(openai.NotFoundError) as caught:
        player.models.retrieve("org/third")
    assert caught.value.code == "model_not_found"


def test_the_second_name_of_a_model_is_the_name_in_its_answer(player: OpenAI) -> None:
    answer = player.chat.completions.create(model="org/second:q4", messages=MESSAGES, extra_body=SAY_ABC)
    assert (answer.model, answer.choices[0].message.content) == ("org/second:q4", "abc")


REFUSED = [
    ({"temperature": 3}, openai.BadRequestError, 400, "invalid_value", "temperature"),
    ({"messages": []}, openai.BadRequestError, 400, "invalid_value", "messages"),
    ({"max_tokens": 10_000_000}, openai.BadRequestError, 400, "context_length_exceeded", "max_tokens"),
    ({"model": "no-such"}, openai.NotFoundError, 404, "model_not_found", "model"),
    ({"store": True}, openai.UnprocessableEntityError, 422, "unsupported_parameter", "store"),
    ({"modalities": ["audio"]}, openai.UnprocessableEntityError, 422, "unsupported_parameter", "modalities"),
]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("members", "kind", "status", "code", "param"), REFUSED)
def test_a_refusal_is_the_right_exception_and_is_not_tried_again(
    scripted: ServerThread,
    members: Any,
    kind: type[openai.APIStatusError],
    status: int,
    code: str,
    param: str,
    is_stream: bool,
) -> None:
    before = num_answers(scripted, status)
    with connect(scripted, max_retries=3) as client, pytest.raises(kind) as caught:
        ask(client, scripted, stream=is_stream, **members)
    error = caught.value
    assert type(error) is kind
    assert (error.status_code, error.code, error.param, error.type) == (status, code, param, "invalid_request_error")
    assert error.request_id == error.response.headers["x-request-id"]
    assert error.response.headers["x-should-retry"] == "false"
    assert num_answers(scripted, status) == before + 1


def num_answers(server: ServerThread, status: int) -> int:
    metrics = request(server.admin_port, "GET", "/metrics").body.decode()
    wanted = f'method="POST",route="/v1/chat/completions",status="{status}"'
    return sum(int(float(line.split()[-1])) for line in metrics.splitlines() if wanted in line)


def test_a_stream_that_breaks_raises_with_the_reason(scripted: ServerThread, player: OpenAI) -> None:
    stream: Any = ask(player, scripted, stream=True, max_tokens=None, extra_body=ENDLESS)
    seen: list[ChatCompletionChunk] = []

    def listen_and_kill() -> None:
        for chunk in stream:
            seen.append(chunk)
            if len(seen) == 3:
                scripted.kill_engine()

    with stream, pytest.raises(openai.APIError) as caught:
        listen_and_kill()
    assert len(seen) >= 3
    assert caught.value.code == "engine_lost"
    assert caught.value.type == "server_error"
    assert not any(chunk.choices[0].finish_reason for chunk in seen)
    scripted.wait_ready()
    assert ask(player, scripted, extra_body=SAY_ABC).choices[0].message.content == "abc"


def test_a_failure_before_any_output_is_an_error_that_may_be_tried_again(scripted: ServerThread) -> None:
    script = {"x_script": {"pieces": ["61"], "error_after": 0, "finish": "error"}}
    with connect(scripted, max_retries=1) as client, pytest.raises(openai.InternalServerError) as caught:
        ask(client, scripted, stream=True, extra_body=script)
    assert (caught.value.status_code, caught.value.code) == (502, "engine_refused")
    assert caught.value.response.headers["x-should-retry"] == "true"
    assert caught.value.response.request.headers["x-stainless-retry-count"] == "1"


def test_a_full_queue_is_a_rate_limit_and_says_when_to_come_back() -> None:
    with (
        ServerThread("scripted", engine__max_sequences=1, admission__queue_depth=0) as server,
        connect(server) as client,
    ):
        stream: Any = ask(client, server, stream=True, max_tokens=None, extra_body=ENDLESS)
        with stream:
            next(stream)
            with pytest.raises(openai.RateLimitError) as caught:
                ask(client, server, extra_body=SAY_ABC)
    error = caught.value
    assert (error.status_code, error.code, error.type) == (429, "queue_full", "rate_limit_error")
    assert error.response.headers["retry-after"] == "1"
    assert error.response.headers["x-should-retry"] == "true"
    assert error.body["limit"]["scope"] == "server"  # type: ignore[index]


def test_a_client_that_leaves_ends_the_work(scripted: ServerThread, player: OpenAI) -> None:
    stream: Any = ask(player, scripted, stream=True, max_tokens=None, extra_body=ENDLESS)
    next(stream)
    stream.close()
    scripted.call(scripted.running.parts.service.wait_empty)
    assert ask(player, scripted, extra_body=SAY_ABC).choices[0].message.content == "abc"
