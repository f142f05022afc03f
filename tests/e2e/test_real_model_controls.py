"""What a caller can ask of generation, on the bundled model: lengths, stops, ids, seeds, choices, log-probabilities."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import request
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread, wait_until
from harness.spoken import ROUNDING

pytestmark = pytest.mark.model

COMPLETION = "/v1/completions"
PROMPT = "The capital of France is"
EOS = 2
"""The model's end token."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serve_bundled_model() as running:
        yield running


def complete(server: ServerThread, **members: Any) -> dict[str, Any]:
    body = {"model": server.model, "prompt": PROMPT, "temperature": 0, "max_tokens": 8, "return_token_ids": True}
    answer = request(server.port, "POST", COMPLETION, {**body, **members})
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.json()
    return told


def first(server: ServerThread, **members: Any) -> dict[str, Any]:
    choice: dict[str, Any] = complete(server, **members)["choices"][0]
    return choice


def ids_of(server: ServerThread, text: str) -> list[int]:
    ids: list[int] = request(server.port, "POST", "/v1/tokenize", {"text": text}).json()["tokens"]
    return ids


@pytest.fixture(scope="module")
def plain(server: ServerThread) -> dict[str, Any]:
    """The answer without any wishes: `Paris`, and more."""
    return first(server)


def test_the_model_knows_the_capital_of_france(plain: dict[str, Any]) -> None:
    assert plain["text"].startswith(" Paris.")
    assert len(plain["token_ids"]) == 8


@pytest.mark.parametrize("count", [1, 3])
def test_max_tokens_is_exact(server: ServerThread, plain: dict[str, Any], count: int) -> None:
    answer = complete(server, max_tokens=count)
    assert answer["usage"]["completion_tokens"] == count
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["token_ids"] == plain["token_ids"][:count]


@pytest.mark.parametrize("stop", ["is.", "aris", ".\n\nThe", "s."])
def test_a_stop_string_cuts_wherever_its_tokens_do(server: ServerThread, plain: dict[str, Any], stop: str) -> None:
    text = plain["text"]
    if stop not in text:
        assert first(server, stop=stop)["text"] == text
        return
    for include in (False, True):
        choice = first(server, stop=["never said", stop], include_stop_str_in_output=include)
        assert choice["text"] == text[: text.index(stop) + (len(stop) if include else 0)]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)


def test_a_stop_token_id_ends_the_text_and_says_so(server: ServerThread, plain: dict[str, Any]) -> None:
    stop = plain["token_ids"][1]
    answer = complete(server, stop_token_ids=[stop])
    choice = answer["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert answer["usage"]["completion_tokens"] == 2


def test_min_tokens_holds_stops_back(server: ServerThread, plain: dict[str, Any]) -> None:
    stop = plain["token_ids"][0]
    late = complete(server, stop_token_ids=[stop], min_tokens=4)
    assert late["usage"]["completion_tokens"] > 4
    assert stop not in late["choices"][0]["token_ids"][:4]
    assert first(server, stop=" Paris", min_tokens=4)["text"].startswith(" Paris")


def test_an_end_token_ends_unless_it_is_ignored_or_too_early(server: ServerThread) -> None:
    wish = {"logit_bias": {str(EOS): 100}}
    at_once = complete(server, **wish)
    assert (at_once["choices"][0]["text"], at_once["choices"][0]["finish_reason"]) == ("", "stop")
    assert at_once["usage"]["completion_tokens"] == 1
    assert complete(server, **wish, min_tokens=3)["usage"]["completion_tokens"] == 4
    ignored = complete(server, **wish, ignore_eos=True)
    assert (ignored["usage"]["completion_tokens"], ignored["choices"][0]["finish_reason"]) == (8, "length")
    assert ignored["choices"][0]["text"] == "", "control tokens are no text"


def test_a_bias_of_a_hundred_decides_and_of_minus_a_hundred_forbids(
    server: ServerThread, plain: dict[str, Any]
) -> None:
    (blue,) = ids_of(server, " blue")
    assert first(server, logit_bias={str(blue): 100})["text"] == " blue" * 8
    paris = plain["token_ids"][0]
    assert first(server, logit_bias={str(paris): -100})["token_ids"][0] != paris


def test_only_allowed_tokens_come(server: ServerThread) -> None:
    allowed = ids_of(server, " red") + ids_of(server, " green")
    for temperature in (0, 2):
        told = first(server, allowed_token_ids=allowed, temperature=temperature, seed=3)
        assert set(told["token_ids"]) <= set(allowed)


def test_bad_words_never_come(server: ServerThread) -> None:
    for word in ("Paris", " Paris", "Paris."):
        assert word not in first(server, bad_words=[word])["text"]


def test_a_seed_repeats_and_another_one_differs(server: ServerThread) -> None:
    wish = {"temperature": 1.5, "max_tokens": 12}
    assert first(server, **wish, seed=7)["token_ids"] == first(server, **wish, seed=7)["token_ids"]
    assert len({tuple(first(server, **wish, seed=seed)["token_ids"]) for seed in range(4)}) > 1
    streamed = read_stream(
        request(
            server.port,
            "POST",
            COMPLETION,
            {"model": server.model, "prompt": PROMPT, **wish, "seed": 7, "stream": True},
        ).body
    )
    assert streamed.text() == first(server, **wish, seed=7)["text"]


def test_penalties_change_what_is_said(server: ServerThread) -> None:
    wish = {"prompt": "a b a b a b a b", "max_tokens": 8}
    plain = first(server, **wish)["token_ids"]
    assert first(server, **wish, repetition_penalty=2.0)["token_ids"] != plain
    assert first(server, **wish, frequency_penalty=2.0, presence_penalty=2.0)["token_ids"] != plain


def num_prefilled(server: ServerThread) -> int:
    num: int = server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_prefill_tokens)
    return num


def test_choices_share_one_prefill(server: ServerThread) -> None:
    prompt = "It was a bright cold day in April, and the clocks were striking thirteen."
    before = num_prefilled(server)
    answer = complete(server, prompt=prompt, n=4, temperature=1, seed=1, max_tokens=4)
    num_prompt = answer["usage"]["prompt_tokens"]
    assert num_prompt == len(ids_of(server, prompt))
    wait_until(lambda: num_prefilled(server) >= before + num_prompt, "the gauge has seen the prompt")
    assert num_prefilled(server) - before == num_prompt
    assert answer["usage"]["completion_tokens"] == sum(len(choice["token_ids"]) for choice in answer["choices"])
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert len({tuple(choice["token_ids"]) for choice in answer["choices"]}) > 1


def test_an_echoed_text_has_the_logprobs_that_it_was_generated_with(server: ServerThread) -> None:
    """Decoding one token at a time and reading all at once are other batches, so up to rounding."""
    generated = first(server, logprobs=2)
    prompt = ids_of(server, PROMPT)
    read = first(server, prompt=prompt + generated["token_ids"], max_tokens=0, echo=True, logprobs=2)
    assert read["text"] == PROMPT + generated["text"]
    assert read["finish_reason"] == "length"
    assert read["logprobs"]["token_logprobs"][0] is None
    assert read["logprobs"]["tokens"][len(prompt) :] == generated["logprobs"]["tokens"]
    assert read["logprobs"]["text_offset"][len(prompt) :] == generated["logprobs"]["text_offset"]
    pairs = zip(read["logprobs"]["token_logprobs"][len(prompt) :], generated["logprobs"]["token_logprobs"], strict=True)
    assert all(abs(one - other) < ROUNDING for one, other in pairs)


def test_echo_and_prompt_logprobs_tell_the_same_numbers(server: ServerThread) -> None:
    told = first(server, max_tokens=1, echo=True, logprobs=3, prompt_logprobs=3)
    prompt = ids_of(server, PROMPT)
    assert told["prompt_token_ids"] == prompt
    assert told["prompt_logprobs"][0] is None
    for token_id, scores, value in zip(
        prompt[1:], told["prompt_logprobs"][1:], told["logprobs"]["token_logprobs"][1:], strict=False
    ):
        assert scores[str(token_id)]["logprob"] == value
        assert 3 <= len(scores) <= 4
    assert len(told["logprobs"]["tokens"]) == len(prompt) + 1


def test_a_batch_of_prompts_is_answered_in_order(server: ServerThread, plain: dict[str, Any]) -> None:
    answer = complete(server, prompt=[PROMPT, "One, two, three,"], n=2, max_tokens=4)
    texts = [choice["text"] for choice in answer["choices"]]
    assert texts[0] == texts[1]
    assert plain["text"].startswith(texts[0])
    assert texts[2] == texts[3] == " four, five,"
    assert answer["usage"]["prompt_tokens"] == len(ids_of(server, PROMPT)) + len(ids_of(server, "One, two, three,"))
