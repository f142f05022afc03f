"""Bodies of megabytes: what cannot fit is refused before anything slow looks at it. And what a caller may have."""

import json
from typing import Any

import pytest

from tidegate.cli.model_loading import load_model
from tidegate.cli.settings_sources import resolve
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.errors import ContextLengthExceeded, InvalidValue, ModelNotAllowed, ModelNotFound
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.principal import Principal
from tidegate.serving.call import Call
from tidegate.serving.prepare import MaxDeadlines, Preparation
from tidegate.serving.prepare_chat import prepare_chat
from tidegate.serving.prepare_completion import prepare_completion
from tidegate.serving.prompt_rules import MAX_TOKENIZE_CHARACTERS
from tidegate.serving.token_routes import tokenize
from tidegate.testing.manual_clock import ManualClock

MODEL_LEN = 4096
SERVED = load_model(resolve(None, {}, {"engine.kind": "simulated"}, is_file_required=False).settings).served
INFO = ModelInfo(258, MODEL_LEN, (257,), 8, 1024, 16, "feed", "simulated")
NAME = SERVED.name


def preparation(deadlines: MaxDeadlines | None = None) -> Preparation:
    clock = ManualClock()
    return Preparation(SERVED, INFO, UnknownFieldPolicy.REPORT, clock, lambda n: bytes(n), deadlines or MaxDeadlines())


def call(principal: Principal | None = None, headers: dict[str, str] | None = None, **fields: Any) -> Call:
    body = json.dumps({"model": NAME, **fields}).encode()
    extra = {} if principal is None else {"principal": principal}
    return Call("/v1/x", "w", 100.0, body, headers or {}, **extra)


def chat(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts], **fields}


def test_messages_that_fit_alone_and_not_together_are_refused_before_they_are_rendered() -> None:
    """The words "at least" are those of the check that counts characters only."""
    longest = SERVED.longest_token_bytes
    texts = ["a" * (MODEL_LEN * longest // 4)] * 5
    with pytest.raises(ContextLengthExceeded, match="at least"):
        prepare_chat(call(**chat(*texts)), preparation())


def test_a_text_to_tokenize_has_a_bound_of_its_own() -> None:
    with pytest.raises(InvalidValue) as raised:
        tokenize(call(prompt="a" * (MAX_TOKENIZE_CHARACTERS + 1)), preparation())
    assert raised.value.limit is not None
    assert (raised.value.limit.name, raised.value.param) == ("tokenize_characters", "prompt")


# ---- what a caller may have ----

BOUND = Principal("k", "k", priority_min=-5, priority_max=10, deadline_max_ms=700)
STRANGER = Principal("s", "s", models=frozenset({"another"}))


@pytest.mark.parametrize(
    ("header", "field", "priority"),
    [(None, None, 0), ("-100", None, -5), ("100", None, 10), (None, -100, -5), ("3", 7, 7), ("-100", 99, 10)],
)
def test_a_priority_is_clamped_to_what_the_key_may_ask_for(
    header: str | None, field: int | None, priority: int
) -> None:
    headers = {} if header is None else {"x-priority": header}
    for prepared in (
        prepare_chat(call(BOUND, headers, **chat("a", priority=field)), preparation()),
        prepare_completion(call(BOUND, headers, prompt=["a", "b"], priority=field), preparation()),
    ):
        assert {prompt.request.priority for prompt in prepared.prompts} == {priority}


@pytest.mark.parametrize(
    ("server_ms", "header", "field", "expected"),
    [
        (None, None, None, (700, "key")),
        (600, None, None, (600, "server")),
        (600, "500", None, (500, "request")),
        (600, "500", 400, (400, "request")),
        (600, "5000", 4000, (600, "server")),
        (800, "5000", 4000, (700, "key")),
    ],
)
def test_the_least_deadline_of_header_field_key_and_server_counts(  # DL-1
    server_ms: int | None, header: str | None, field: int | None, expected: tuple[int, str]
) -> None:
    headers = {} if header is None else {"x-deadline-ms": header}
    prepared = prepare_chat(call(BOUND, headers, **chat("a", deadline_ms=field)), preparation(MaxDeadlines(server_ms)))
    whole = prepared.context.deadlines.whole
    assert whole is not None
    assert (whole.limit_ms, whole.scope, whole.at) == (*expected, 100.0 + expected[0] / 1000)


def test_a_model_that_the_key_may_not_use_is_refused_and_not_shown() -> None:
    for prepare, fields in (
        (prepare_chat, chat("a")),
        (prepare_completion, {"prompt": "a"}),
        (tokenize, {"text": "a"}),
    ):
        with pytest.raises(ModelNotAllowed):
            prepare(call(STRANGER, **fields), preparation())
        with pytest.raises(ModelNotFound):
            prepare(call(STRANGER, **fields | {"model": "nobody's"}), preparation())
    assert SERVED.names_for(STRANGER) == ()
    assert SERVED.names_for(BOUND) == SERVED.names


# ---- the price ----


@pytest.mark.parametrize(
    ("fields", "num_blocks"),
    [
        ({"prompt": "a" * 15, "max_tokens": 1}, 1),
        ({"prompt": "a" * 16, "max_tokens": 1}, 2),
        ({"prompt": "a" * 16, "max_tokens": 0, "echo": True}, 1),
        ({"prompt": "a" * 16, "max_tokens": 16, "n": 3}, 6),
        ({"prompt": ["a" * 16, "b"], "max_tokens": 15, "n": 2}, 6),
    ],
)
def test_the_price_is_the_blocks_of_every_choice_at_its_longest(fields: dict[str, Any], num_blocks: int) -> None:
    assert prepare_completion(call(**fields), preparation()).num_peak_blocks == num_blocks
