"""The OpenAPI document against a running server: whatever is sent, what comes back is what the document says.

Two kinds of requests: any that the document allows or forbids, mostly refused; and likely ones, made of the fields that
`/v1/contract` calls served, mostly answered. Everything is bounded: examples, seeds, tokens; nothing waits.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from harness.server_thread import ServerThread
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.json_schema import closed
from tidegate.contract.openapi import openapi_document
from tidegate.serving.describe import field_uses
from tidegate.serving.request_policy import RequestPolicy


def no_fault_of_ours(context: Any, response: Any, case: Any) -> bool | None:
    """A short deadline, which any caller may set, is answered with 504."""
    return None if response.status_code == 504 else not_a_server_error(context, response, case)


CHECKS = [
    no_fault_of_ours,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
REQUESTS = {"ChatRequest": ChatRequest, "CompletionRequest": CompletionRequest}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running
        assert running.baseline().blocks_used == 0


@pytest.fixture(scope="module")
def answered() -> Counter[str]:
    """How many requests were answered with 200, by path."""
    return Counter()


def document() -> dict[str, Any]:
    """The document, with answers closed: a member that it does not name is a fault. Scripts neither wait nor repeat."""
    found = openapi_document(model="scripted")
    schemas = found["components"]["schemas"]
    for name in ("ScriptBody", "ScriptPart"):
        for member in ("delays_s", "prefill_delay_s", "queue_delay_s", "repeat"):
            schemas[name]["properties"].pop(member, None)
    found["components"]["schemas"] = {
        name: schema if "Request" in name else closed(schema) for name, schema in schemas.items()
    }
    return found


def likely_document() -> dict[str, Any]:
    """The document as somebody would use it who has read `/v1/contract`."""
    found = document()
    schemas = found["components"]["schemas"]
    for name, kind in REQUESTS.items():
        members = schemas[name]["properties"]
        for member, use in field_uses(kind, has_scripts=False, policy=RequestPolicy()).items():
            if use.use == "not_served":
                del members[member]
        members |= LIKELY
        schemas[name]["required"] = [*schemas[name]["required"], "max_tokens"]
    for name in ("TokenizeRequest", "DetokenizeRequest"):
        schemas[name]["properties"] |= {"model": LIKELY["model"]}
    for name in ("EmbeddingRequest", "ScoreRequest", "RerankRequest", "ClassifyRequest"):
        members = schemas[name]["properties"]
        members |= {member: schema for member, schema in (LIKELY | READ).items() if member in members}
    schemas["ClassifyRequest"]["required"] = [*schemas["ClassifyRequest"]["required"], "labels"]
    schemas["DetokenizeRequest"]["properties"]["tokens"] = TOKEN_IDS
    schemas["UserMessage"]["properties"]["content"] = {"type": "string"}
    schemas["CompletionRequest"]["properties"]["prompt"] = {"anyOf": [{"type": "string", "minLength": 1}, TOKEN_IDS]}
    return found


TOKEN_IDS = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}, "minItems": 1, "maxItems": 9}
LIKELY: dict[str, Any] = {
    "model": {"const": "scripted"},
    "n": {"enum": [None, 1, 2]},
    "max_tokens": {"type": "integer", "minimum": 8, "maximum": 40},
    "min_tokens": {"enum": [None, 0, 3]},
    "stop": {"enum": [None, "e", ["the", "z"]]},
    "stop_token_ids": TOKEN_IDS,
    "allowed_token_ids": TOKEN_IDS,
    "bad_words": {"enum": [None, ["x"]]},
    "deadline_ms": {"enum": [None, 600_000]},
    "first_token_deadline_ms": {"enum": [None, 600_000]},
    "logit_bias": {"enum": [None, {"65": -3.5}]},
    "chat_template_kwargs": {"enum": [None, {"mood": "good"}]},
    "continue_final_message": {"enum": [None, False]},
    "prompt_logprobs": {"enum": [None, 0, 2]},
}

READ: dict[str, Any] = {
    "input": {"enum": ["a", ["a", "bc"], [65, 66], [[65], [66, 67]]]},
    "dimensions": {"enum": [None, 64]},
    "labels": {"enum": [["x"], ["x", "yes"]]},
    "text_1": {"enum": ["a", ["a"]]},
    "text_2": {"enum": ["b", ["b", "c"]]},
    "query": {"enum": ["a", "what?"]},
    "documents": {"enum": [["a"], ["a", {"text": "b"}]]},
}
"""Of requests whose texts are only read."""


def load(found: dict[str, Any], *phases: str, mode: str = "all") -> Any:
    config = SchemathesisConfig.from_dict(
        {
            "generation": {"mode": mode, "allow-extra-parameters": False},
            "phases": {name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing", "stateful")},
        }
    )
    return schemathesis.openapi.from_dict(found, config=config)


def for_each_operation(loaded: Any, num_examples: int, wanted: str = "") -> Callable[[FunctionType], None]:
    """Makes a test for each operation whose label `wanted` is found in, under a name of its own.

    A run in several processes knows tests by their names, and takes those of one name for one.
    """

    def define(test: FunctionType) -> None:
        for found in loaded.get_all_operations():
            operation = found.ok()
            if re.search(wanted, operation.label) is None:
                continue
            name = f"{test.__name__}__{re.sub(r'[^a-z0-9]+', '_', operation.label.lower()).strip('_')}"
            one = loaded.include(method=operation.method.upper(), path=operation.path)
            own = FunctionType(test.__code__, test.__globals__, name)
            globals()[name] = one.parametrize()(settings(BOUNDED, max_examples=num_examples)(own))

    return define


@for_each_operation(load(document(), "examples", "fuzzing"), 12)
def test_whatever_is_sent_the_answer_is_in_the_document(server: ServerThread, case: Any) -> None:
    check(server, case)


@for_each_operation(load(document(), "coverage"), 12, "detokenize|models|contract|health")
def test_so_it_is_on_the_borders_of_what_is_allowed(server: ServerThread, case: Any) -> None:
    check(server, case)


@for_each_operation(load(likely_document(), "fuzzing", mode="positive"), 20, "POST")
def test_what_the_description_calls_served_is_answered_as_documented(
    server: ServerThread, answered: Counter[str], case: Any
) -> None:
    settle(case)
    answered[case.operation.path] += check(server, case) == 200


def test_most_of_the_likely_requests_were_answered(answered: Counter[str]) -> None:
    assert len(answered) == 8
    assert min(answered.values()) >= 8, answered


def check(server: ServerThread, case: Any) -> int:
    response = case.call(base_url=server.url)
    case.validate_response(response, checks=CHECKS)
    status: int = response.status_code
    return status


def settle(case: Any) -> None:
    """Makes a request sensible where a schema cannot: what a field needs beside it, and what excludes what."""
    body = case.body = whole_numbers(case.body)
    for name in ("Idempotency-Key", "X-Deadline-Ms", "X-First-Token-Deadline-Ms"):
        case.headers.pop(name, None)
    if body.get("messages"):
        body["messages"].append({"role": "user", "content": "hello"})
    if case.operation.path == "/v1/tokenize":
        given = next((name for name in ("messages", "prompt", "text") if body.get(name) is not None), None)
        body |= {"text": "hello"} if given is None else {}
        case.body = {
            name: body[name] for name in body if name not in {"messages", "prompt", "text"} - {given or "text"}
        }
    if body.get("top_logprobs") is not None:
        body["logprobs"] = True
    if body.get("stream_options") is not None:
        body["stream"] = True
        body["stream_options"].pop("include_obfuscation", None)
    if body.get("stream"):
        body.pop("prompt_logprobs", None)
    if body.get("allowed_token_ids"):
        body.pop("min_tokens", None)


def whole_numbers(value: Any) -> Any:
    """Writes 8.0 as 8: one integer to JSON Schema, but not to servers."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
