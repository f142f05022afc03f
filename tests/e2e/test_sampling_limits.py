"""Every sampling field at and beyond its limits, alone and in pairs: an answer or a 400 that names it; always alive.

Advisories behind this: n without bound, penalties that crashed an engine, ids outside the vocabulary, integers that
overflow, labels without bounds.
"""

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, request
from harness.sampling_fields import FIELDS, Field
from harness.server_thread import ServerThread

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
NUM_PAIRS = 400
SLOW = {"n"}
"""In pairs, 128 choices at a time would only take long."""
IDS = [f"{'chat' if field.is_chat else 'completion'}-{field.name}" for field in FIELDS]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated", engine__simulated_model="hash") as running:
        yield running
        assert running.baseline().blocks_used == 0
        assert running.look(lambda: running.running.supervisor.engine.statistics().num_restarts) == 0


def ask(server: ServerThread, members: str, *, is_chat: bool = True) -> Answer:
    """Sends a request with `members`, JSON text, after the usual ones; of equal names the last one counts."""
    usual = '"messages": [{"role": "user", "content": "hi"}]' if is_chat else '"prompt": "hi"'
    body = f'{{"model": "{server.model}", "max_tokens": 4, {usual}, {members}}}'
    return request(server.port, "POST", CHAT if is_chat else COMPLETION, body.encode())


def check_alive(server: ServerThread) -> None:
    assert ask(server, '"temperature": 0').status == 200


@pytest.mark.parametrize("field", FIELDS, ids=IDS)
def test_what_is_within_the_limits_is_served(server: ServerThread, field: Field) -> None:  # SEC-20 SEC-23
    for text in (*field.good, "null"):
        answer = ask(server, f'{field.beside}"{field.name}": {text}', is_chat=field.is_chat)
        assert answer.status == 200, (text, answer.body)
        if answer.headers["content-type"].startswith("application/json"):
            assert_finite(answer.json())


@pytest.mark.parametrize("field", FIELDS, ids=IDS)
def test_what_is_beyond_them_is_a_400_that_names_the_field(
    server: ServerThread, field: Field
) -> None:  # SEC-1 SEC-18 SEC-20 SEC-23 SEC-24
    for text in field.bad:
        answer = ask(server, f'{field.beside}"{field.name}": {text}', is_chat=field.is_chat)
        check_refusal(answer, {field.name}, text)
    check_alive(server)


@pytest.mark.parametrize("field", FIELDS, ids=IDS)
def test_a_stream_is_refused_before_it_starts(server: ServerThread, field: Field) -> None:
    if field.name == "stream":
        return
    for text in field.bad[:3]:
        answer = ask(server, f'"stream": true, {field.beside}"{field.name}": {text}', is_chat=field.is_chat)
        check_refusal(answer, {field.name}, text)


Pair = tuple[tuple[Field, str], tuple[Field, str]]


def pairs() -> list[Pair]:
    """A fixed sample of value pairs, about half of them good with good."""
    chosen = random.Random(20)
    fields = [field for field in FIELDS if field.is_chat and field.name not in SLOW]
    every = [pair for pair in itertools.combinations(fields, 2) if pair[0].name != pair[1].name]
    sample = chosen.choices(every, k=NUM_PAIRS)
    return [((one, pick(chosen, one)), (other, pick(chosen, other))) for one, other in sample]


def pick(chosen: random.Random, field: Field) -> str:
    return chosen.choice(field.good if chosen.random() < 0.7 else field.bad)


def test_the_sample_of_pairs_reaches_every_field_and_both_outcomes() -> None:
    sample = pairs()
    assert {field.name for pair in sample for field, _ in pair} == {
        field.name for field in FIELDS if field.is_chat and field.name not in SLOW
    }
    num_good = sum(all(text in field.good for field, text in pair) for pair in sample)
    assert NUM_PAIRS // 4 < num_good < NUM_PAIRS * 3 // 4


def test_pairs_are_served_when_both_are_good_and_refused_by_name_otherwise(server: ServerThread) -> None:  # SEC-23
    for pair in pairs():
        members = ", ".join(f'{field.beside}"{field.name}": {text}' for field, text in pair)
        bad = {field.name for field, text in pair if text in field.bad}
        answer = ask(server, members)
        if bad:
            check_refusal(answer, bad, members)
        elif answer.status == 400:
            assert is_contradiction(pair), (members, answer.body)
        elif is_unserved(pair):
            assert answer.status == 422
        else:
            assert answer.status == 200, (members, answer.body)
    check_alive(server)


def is_contradiction(pair: Pair) -> bool:
    """Good values that exclude each other."""
    values = {field.name: text for field, text in pair}
    if "min_tokens" in values:
        return bool({"max_tokens", "max_completion_tokens", "allowed_token_ids"} & set(values))
    return values.get("logprobs") == "false" and "top_logprobs" in values


def is_unserved(pair: Pair) -> bool:
    values = {field.name: text for field, text in pair}
    return values.get("stream") == "true" and "prompt_logprobs" in values


EXTREMES = [
    '"temperature": 2, "top_p": 5e-324, "min_p": 1, "top_k": 1',
    '"temperature": 5e-324, "repetition_penalty": 5e-324, "presence_penalty": -2, "frequency_penalty": -2',
    '"temperature": 2, "repetition_penalty": 5e-324, "frequency_penalty": 2, "presence_penalty": 2',
    '"temperature": 2, "repetition_penalty": 2, "logit_bias": {"0": 100, "1": -100}, "min_p": 1',
    '"allowed_token_ids": [97], "logit_bias": {"97": -100}',
    '"allowed_token_ids": [257], "ignore_eos": true',
    '"allowed_token_ids": [257], "min_tokens": 4, "ignore_eos": true',
]
CONTRADICTIONS = [
    '"allowed_token_ids": [97], "bad_words": ["a"]',
    '"allowed_token_ids": [257], "min_tokens": 4',
    '"allowed_token_ids": [97], "stop_token_ids": [97], "min_tokens": 4',
]


@pytest.mark.parametrize("members", EXTREMES)
def test_all_extremes_at_once_give_an_answer_with_finite_numbers(server: ServerThread, members: str) -> None:  # SEC-23
    answer = ask(server, members + ', "logprobs": true, "top_logprobs": 20, "prompt_logprobs": 20')
    assert answer.status == 200, answer.body
    assert_finite(answer.json())
    stream = ask(server, members + ', "logprobs": true, "top_logprobs": 20, "stream": true')
    told = read_stream(stream.body)
    assert (told.findings, told.num_done, told.errors) == ([], 1, [])
    check_alive(server)


@pytest.mark.parametrize("members", CONTRADICTIONS)
def test_fields_that_together_forbid_every_token_are_refused(server: ServerThread, members: str) -> None:
    check_refusal(ask(server, members), {"allowed_token_ids"}, members)
    check_alive(server)


@pytest.mark.parametrize(
    "ids", ["[-1]", "[258]", "[1.5]", "[true]", '["x", 1]', "[[258]]", "[4294967296]", "[1e30]", "[[]]"]
)
def test_prompts_of_ids_outside_the_vocabulary_are_refused(server: ServerThread, ids: str) -> None:  # SEC-18 SEC-24
    answer = ask(server, f'"prompt": {ids}', is_chat=False)
    assert answer.status == 400
    assert answer.json()["error"]["param"].startswith("prompt")
    check_alive(server)


def check_refusal(answer: Answer, names: set[str], context: str) -> None:
    assert answer.status == 400, (context[:200], answer.body)
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    if "NaN" in context and error["code"] == "invalid_json":
        return
    assert error["param"] is not None, (context[:200], error)
    assert error["param"].partition("[")[0].partition(".")[0] in names, (context[:200], error)


def assert_finite(value: Any) -> None:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            assert_finite(item)
    elif isinstance(value, float):
        assert math.isfinite(value)
