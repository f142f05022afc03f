"""What the official Python client makes of one recorded answer: its exception, or what it reads, and what its types
refuse. Nothing is sent: a transport of our own plays the recorded bytes.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
from openai import OpenAI, Stream
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import ValidationError

from tidegate.conformance.wire.exchange import Ending, Exchange

ROUTES = {"/chat/completions": ChatCompletion, "/completions": Completion}


@dataclass(slots=True)
class Reading:
    """`raised`: name of the exception, empty where there was none, and its `code` and `message`. `choices`: index to
    text, calls as (name, arguments), finish_reason. `refused`: places of the answer that the client's types do not
    allow, each with what is wrong there.
    """

    raised: str = ""
    code: Any = None
    message: str = ""
    choices: dict[int, tuple[str, tuple[tuple[str, str], ...], str | None]] = field(default_factory=dict)
    usage: Any = None
    refused: set[str] = field(default_factory=set)


def is_readable(exchange: Exchange) -> bool:
    """Whether it is an answer to a request that the client could have made."""
    body = exchange.request_json
    path = urlsplit(exchange.url).path
    return (
        exchange.method == "POST"
        and isinstance(body, dict)
        and any(path.endswith(route) for route in ROUTES)
        and exchange.status is not None
        and exchange.ending in (Ending.WHOLE, Ending.CUT)
    )


def read(exchange: Exchange) -> Reading:
    """Returns what the client makes of the answer. Never raises what the client raises."""
    reading = Reading()
    kind = next(kind for route, kind in ROUTES.items() if urlsplit(exchange.url).path.endswith(route))
    wants_stream = exchange.request_json.get("stream") is True
    client = OpenAI(
        api_key="none",
        base_url="http://recorded/v1",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(lambda _: _response(exchange))),
    )
    try:
        if wants_stream:
            _read_stream(client, exchange, kind, reading)
        else:
            answer = client.post(
                urlsplit(exchange.url).path.removeprefix("/v1"), cast_to=kind, body=exchange.request_json
            )
            _take_whole(answer, exchange, kind, reading)
    except openai.APIError as error:
        reading.raised, reading.code, reading.message = type(error).__name__, error.code, str(error)[:200]
    except Exception as error:  # whatever it is, a caller of the client gets it
        reading.raised, reading.message = type(error).__name__, str(error)[:200]
    return reading


def _response(exchange: Exchange) -> httpx.Response:
    dropped = {"content-length", "transfer-encoding", "content-encoding"}
    headers = [(name, value) for name, value in exchange.response.headers if name.lower() not in dropped]
    return httpx.Response(exchange.status or 0, headers=headers, content=exchange.body)


def _take_whole(answer: Any, exchange: Exchange, kind: Any, reading: Reading) -> None:
    reading.refused |= set(_refusals(kind, exchange.json))
    if isinstance(answer, str):
        reading.raised, reading.message = "none: a text is returned in place of an object", answer[:80]
        return
    for choice in answer.choices or ():
        reading.choices[choice.index] = (_text_of(choice), _calls_of(choice), choice.finish_reason)
    reading.usage = answer.usage


def _read_stream(client: OpenAI, exchange: Exchange, kind: Any, reading: Reading) -> None:
    is_chat = kind is ChatCompletion
    chunk_kind: Any = ChatCompletionChunk if is_chat else Completion
    stream = client.post(
        urlsplit(exchange.url).path.removeprefix("/v1"),
        cast_to=kind,
        body=exchange.request_json,
        stream=True,
        stream_cls=Stream[chunk_kind],
    )
    state = ChatCompletionStreamState() if is_chat else None
    for chunk in stream:
        if state is not None:
            state.handle_chunk(chunk)
        for choice in chunk.choices or () if state is None else ():
            text, _, finish = reading.choices.get(choice.index, ("", (), None))
            reading.choices[choice.index] = (text + (choice.text or ""), (), choice.finish_reason or finish)
        reading.usage = getattr(chunk, "usage", None) or reading.usage
    for body in exchange.chunks:
        if isinstance(body, dict) and not body.get("error"):
            reading.refused |= set(_refusals(chunk_kind, _without_null_finish(body, is_chat=is_chat)))
    if state is not None:
        for choice in state.current_completion_snapshot.choices:
            reading.choices[choice.index] = (_text_of(choice), _calls_of(choice), choice.finish_reason)


def _without_null_finish(body: dict[str, Any], *, is_chat: bool) -> dict[str, Any]:
    """The client has one type for completions, whole and streamed: a finish_reason of null is no fault of a stream."""
    if is_chat:
        return body
    choices = [
        {**choice, "finish_reason": choice.get("finish_reason") or "stop"} if isinstance(choice, dict) else choice
        for choice in body.get("choices") or ()
    ]
    return {**body, "choices": choices}


def _refusals(kind: Any, body: Any) -> Iterator[str]:
    """Yields what the client's own types do not allow, as `choices.logprobs: what`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.model_validate(body, strict=True)
    except ValidationError as error:
        for part in error.errors():
            place = ".".join(str(name) for name in part["loc"] if not isinstance(name, int))
            yield f"{place}: {part['msg']}"


def _text_of(choice: Any) -> str:
    message = getattr(choice, "message", None)
    return (choice.text if message is None else message.content) or ""


def _calls_of(choice: Any) -> tuple[tuple[str, str], ...]:
    calls = getattr(getattr(choice, "message", None), "tool_calls", None) or ()
    return tuple(
        (part.name or "", (getattr(part, "arguments", None) or getattr(part, "input", None) or ""))
        for call in calls
        if (part := getattr(call, "function", None) or getattr(call, "custom", None)) is not None
    )
