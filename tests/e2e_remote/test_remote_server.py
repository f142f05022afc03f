"""`tidegate serve` in front of a remote engine gives what it gives with the simulated engine in a process of its own.

The stand-in computes what the simulated engine computes, and the tokenizer's folder has its tokens, so bodies are equal
byte by byte but for ids, times, names, the revision, and what earlier calls have left in the cache.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.byte_folder import write_byte_folder
from harness.constrained import make_core
from harness.raw_http import request
from harness.remote_stand_in import Speech
from harness.server_process import ServerProcess
from harness.sglang_speech import SglangSpeech
from harness.stand_in_thread import StandInThread
from harness.vllm_speech import VllmSpeech
from tidegate.backends.simulated import SimulatedModel, SimulatedShape

SPEECHES: dict[str, Callable[[], Speech]] = {
    "vllm-http": lambda: VllmSpeech(has_guidance=True),
    "sglang": lambda: SglangSpeech(grammar_backend="llguidance"),
}
SAME = {"model__served_model_name": "m", "model__max_model_len": 4000}
_CHANGING = re.compile(rb'"(id|created|model|system_fingerprint|cached_tokens)":("[^"]*"|\d+)')


def constrained_core() -> Any:
    """Returns what the simulated engine's process runs: the successor model, held to grammars."""
    shape = SimulatedShape(max_sequences=8, num_blocks=512)
    core = make_core(shape, model=SimulatedModel.SUCCESSOR).driver.core
    return core, core.model


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ServerProcess]]:
    folder = write_byte_folder(tmp_path_factory.mktemp("tokenizer"))
    with ExitStack() as stack:
        found = {"simulated": stack.enter_context(ServerProcess("simulated", **SAME))}
        for kind, speech in SPEECHES.items():
            stand_in = stack.enter_context(StandInThread(speech(), make_core=constrained_core))
            found[kind] = stack.enter_context(
                ServerProcess(
                    kind, engine__url=stand_in.url, model__tokenizer=folder, model__source="test/model", **SAME
                )
            )
        yield found


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 6, "temperature": 0, **fields}


COMPLETION = {"model": "m", "prompt": "abc", "temperature": 0}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "s",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 7}, "k": {"enum": ["a", "b"]}},
            "required": ["n", "k"],
            "additionalProperties": False,
        },
    },
}
TOOL = {
    "type": "function",
    "function": {
        "name": "go",
        "parameters": {
            "type": "object",
            "properties": {"far": {"type": "boolean"}},
            "required": ["far"],
            "additionalProperties": False,
        },
    },
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": ("/v1/chat/completions", chat()),
    "streamed": ("/v1/chat/completions", chat(stream=True)),
    "streamed with usage": ("/v1/chat/completions", chat(stream=True, stream_options={"include_usage": True})),
    "several choices": ("/v1/chat/completions", chat(n=3)),
    "stop string": ("/v1/chat/completions", chat(stop=["g"], stream=True)),
    "stop token": ("/v1/chat/completions", chat(stop_token_ids=[102])),
    "log-probabilities": ("/v1/chat/completions", chat(logprobs=True, top_logprobs=3)),
    "streamed log-probabilities": ("/v1/chat/completions", chat(logprobs=True, top_logprobs=2, stream=True)),
    "completion": ("/v1/completions", {"model": "m", "prompt": "abc", "max_tokens": 5, "temperature": 0}),
    "echo with scores": (
        "/v1/completions",
        {"model": "m", "prompt": "abc", "max_tokens": 0, "echo": True, "logprobs": 2},
    ),
    "two prompts": ("/v1/completions", {"model": "m", "prompt": ["abc", "xyz"], "max_tokens": 4, "temperature": 0}),
    "too long": ("/v1/completions", {"model": "m", "prompt": "abc", "max_tokens": 100_000}),
    "schema": ("/v1/chat/completions", chat(response_format=SCHEMA, max_tokens=60)),
    "schema in a stream": ("/v1/chat/completions", chat(response_format=SCHEMA, max_tokens=60, stream=True)),
    "choice": ("/v1/completions", {**COMPLETION, "structured_outputs": {"choice": ["yes", "no"]}}),
    "regex": ("/v1/completions", {**COMPLETION, "structured_outputs": {"regex": "[a-f]{3}"}}),
    "forced call": ("/v1/chat/completions", chat(tools=[TOOL], tool_choice="required", max_tokens=90)),
    "bias": ("/v1/chat/completions", chat(logit_bias={"88": 100})),
}


@pytest.mark.process
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", SPEECHES)
def test_a_remote_engine_answers_with_the_same_bytes(servers: dict[str, ServerProcess], kind: str, name: str) -> None:
    path, body = CALLS[name]
    own = request(servers["simulated"].port, "POST", path, body)
    theirs = request(servers[kind].port, "POST", path, body)
    assert theirs.status == own.status == (400 if name == "too long" else 200), theirs.body
    if body.get("stream"):
        assert _story(theirs.body) == _story(own.body)
    else:
        assert _fixed(theirs.body) == _fixed(own.body)


def _fixed(body: bytes) -> bytes:
    return _CHANGING.sub(rb'"\1":"*"', body)


def _story(body: bytes) -> list[Any]:
    """A stream's events with neighbouring texts joined: how tokens share events depends on time."""
    told: list[Any] = []
    for event in _fixed(body).split(b"\n\n"):
        data = event.removeprefix(b"data: ")
        chunk = json.loads(data) if data not in (b"", b"[DONE]") else data.decode()
        if _is_text(chunk) and told and _is_text(told[-1]):
            one, other = told[-1]["choices"][0], chunk["choices"][0]
            one["delta"]["content"] += other["delta"]["content"]
            if other["logprobs"] is not None:
                one["logprobs"]["content"] += other["logprobs"]["content"]
        else:
            told.append(chunk)
    return told


def _is_text(chunk: Any) -> bool:
    return isinstance(chunk, dict) and bool(chunk["choices"]) and [*chunk["choices"][0]["delta"]] == ["content"]
