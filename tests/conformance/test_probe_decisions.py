"""From answers to probes to what a server can do."""

from dataclasses import replace
from typing import Any

import pytest

from harness.exchanges import answered, exchanged, http
from tidegate.conformance.probing import probe_decisions as decisions
from tidegate.conformance.probing.site import Site
from tidegate.conformance.wire.exchange import Ending, Exchange

PEER = Site()
OURS = Site(has_contract=True)
REFUSAL = {"error": {"message": "tools are not served", "type": "x", "param": "tools", "code": "y"}}
TAKEN = answered(200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}}]})


def says(content: str, **fields: Any) -> Exchange:
    return answered(200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": content, **fields}}]})


def echoed(text: str) -> Exchange:
    answer = answered(200, {"object": "text_completion", "choices": [{"index": 0, "text": text}]})
    return replace(answer, request_json={"prompt": "One, two,"})


def routed(path: str, status: int, body: Any) -> Exchange:
    return replace(answered(status, {"detail": body}), method="GET", url=f"http://peer/v1{path}")


def pairs(*ends: str) -> tuple[Exchange, ...]:
    return tuple(answered(200, {"choices": [{"index": 0, "message": {}, "finish_reason": end}]}) for end in ends)


def counted(num_tokens: int) -> Exchange:
    answer = answered(200, {"choices": [{"index": 0, "message": {}}], "usage": {"completion_tokens": num_tokens}})
    return replace(answer, request_json={"max_tokens": 1})


NOWHERE = routed("/no-such-mxyz", 404, "no /v1/no-such-mxyz")


SERVED: dict[str, tuple[Exchange, str | None]] = {
    "taken": (TAKEN, None),
    "refused honestly": (answered(422, REFUSAL), "tools are not served"),
    "refused with a flat error": (answered(400, {"object": "error", "message": "no tools", "code": 400}), "no tools"),
    "refused with an error that is text": (answered(400, {"error": "no tools"}), "no tools"),
    "refused with details": (answered(422, {"detail": [{"loc": ["body", "tools"]}]}), "tools"),
    "no such route": (answered(404, {}), "404"),
    "no such method": (exchanged(http(405, b"")), "405"),
    "not implemented": (exchanged(http(501, b"")), "501"),
    "refused without a word counts as there": (exchanged(http(400, b"")), None),
    "refused with an error without a message counts as there": (answered(400, {"error": {"code": 400}}), None),
    "failed": (answered(500, REFUSAL), "could not tell"),
    "overloaded": (answered(503, {}), "could not tell"),
    "limited": (answered(429, {}), "could not tell"),
    "not let in": (answered(401, {}), "could not tell"),
    "nothing came": (exchanged(ending=Ending.TIMED_OUT), "could not tell"),
    "not HTTP": (exchanged(b"garbage\n", ending=Ending.NOT_HTTP), "could not tell"),
    "an error in the stream": (
        exchanged(http(200, b'data: {"error": {"message": "engine lost"}}\n\n', "text/event-stream")),
        "engine lost",
    ),
}


@pytest.mark.parametrize("name", SERVED)
def test_only_an_honest_refusal_or_silence_makes_a_capability_absent(name: str) -> None:
    exchange, expected = SERVED[name]
    reason = decisions.is_served(PEER, (TAKEN, exchange))
    assert (reason is None) == (expected is None)
    assert expected is None or expected in str(reason)


OTHERS: dict[str, tuple[decisions.Decision, Site, tuple[Exchange, ...], str | None]] = {
    "a choice obeyed": (decisions.obeys_choice, PEER, (says("quokka-71"),), None),
    "a choice ignored by a peer": (decisions.obeys_choice, PEER, (says("hello"),), "no effect"),
    "a choice ignored by us is for the cases": (decisions.obeys_choice, OURS, (says("hello"),), None),
    "a choice refused by us": (decisions.obeys_choice, OURS, (answered(422, REFUSAL),), "not served"),
    "reasoning": (decisions.writes_reasoning, PEER, (says("b", reasoning_content="a"),), None),
    "reasoning under its other name": (decisions.writes_reasoning, PEER, (says("b", reasoning="a"),), None),
    "no reasoning": (decisions.writes_reasoning, OURS, (says("b"),), "no reasoning"),
    "replayed": (decisions.replays, PEER, (TAKEN, answered(200, {}, idempotent_replayed="true")), None),
    "not replayed by a peer": (decisions.replays, PEER, (TAKEN, TAKEN), "no effect"),
    "not replayed by us is for the cases": (decisions.replays, OURS, (TAKEN, TAKEN), None),
    "deadline ignored": (decisions.refuses_a_malformed_deadline, PEER, (TAKEN,), "no effect"),
    "deadline ignored by us is for the cases": (decisions.refuses_a_malformed_deadline, OURS, (TAKEN,), None),
    "deadline refused": (decisions.refuses_a_malformed_deadline, PEER, (answered(400, REFUSAL),), None),
    "key asked for": (decisions.asks_for_a_key, PEER, (answered(401, {}), answered(200, {})), None),
    "key not asked for": (decisions.asks_for_a_key, PEER, (TAKEN, answered(200, {})), "without a key"),
    "key not known": (decisions.asks_for_a_key, PEER, (answered(401, {}), answered(401, {})), "also with the key"),
    "key, no answer": (
        decisions.asks_for_a_key,
        PEER,
        (exchanged(ending=Ending.RESET), answered(200, {})),
        "could not tell",
    ),
    "unknown model refused": (decisions.refuses_unknown_models, PEER, (answered(404, REFUSAL),), None),
    "unknown model answered": (decisions.refuses_unknown_models, PEER, (TAKEN,), "any name"),
    "unknown model answered by us is for the cases": (decisions.refuses_unknown_models, OURS, (TAKEN,), None),
    "unknown model breaks it": (decisions.refuses_unknown_models, PEER, (answered(500, {}),), "could not tell"),
    "unknown model redirects": (decisions.refuses_unknown_models, PEER, (answered(302, {}),), "could not tell"),
    "tokens": (decisions.returns_token_ids, PEER, (answered(200, {"tokens": [1]}), answered(200, {})), None),
    "tokens in another form": (decisions.returns_token_ids, PEER, (answered(200, {}), answered(200, {})), "a form"),
    "no way back": (decisions.returns_token_ids, PEER, (answered(200, {"tokens": [1]}), answered(404, {})), "404"),
    "a tokenizer at the root": (
        decisions.has_a_tokenizer,
        PEER,
        (answered(404, {}), answered(200, {"tokens": [1]}), answered(404, {}), answered(200, {"content": "a"})),
        None,
    ),
    "a tokenizer without a way back": (
        decisions.has_a_tokenizer,
        PEER,
        (answered(200, {"tokens": [1]}), answered(404, {}), answered(404, {}), answered(200, {"text": "a"})),
        "no tokenize route",
    ),
    "a tokenizer of ours is for the cases": (decisions.has_a_tokenizer, OURS, (), None),
    "contract": (decisions.describes_itself, OURS, (answered(404, {}),), None),
    "no contract": (decisions.describes_itself, PEER, (answered(404, {}),), "404"),
    "no contract, and any path is answered": (decisions.describes_itself, PEER, (TAKEN,), "does not answer"),
    "admin": (decisions.lets_us_in, OURS, (answered(200, {}),), None),
    "admin, no token": (decisions.lets_us_in, OURS, (answered(401, {}),), "--admin-token-file"),
    "admin, not ours": (decisions.lets_us_in, PEER, (answered(302, {}),), "302"),
    "drain allowed": (decisions.may_be_drained, Site(may_drain=True), (answered(200, {}),), None),
    "drain not allowed": (decisions.may_be_drained, OURS, (answered(200, {}),), "--drain"),
    "scripted": (decisions.plays_scripts, Site(is_scripted=True), (), None),
    "not scripted": (decisions.plays_scripts, OURS, (), "scripted"),
    "metrics at the root": (
        decisions.tells_its_load,
        PEER,
        (exchanged(http(200, b"vllm:num_requests_running 0\n", "text/plain")),),
        None,
    ),
    "the prompt came back": (decisions.brings_the_prompt_back, PEER, (echoed("One, two, three"),), None),
    "echo ignored by a peer": (decisions.brings_the_prompt_back, PEER, (echoed(" three"),), "completions.echo"),
    "echo ignored by us is for the cases": (decisions.brings_the_prompt_back, OURS, (echoed(" three"),), None),
    "two choices": (
        decisions.gives_two_choices,
        PEER,
        (answered(200, {"choices": [{"index": 0}, {"index": 1}]}),),
        None,
    ),
    "n ignored by a peer": (decisions.gives_two_choices, PEER, (TAKEN,), "1 came"),
    "n ignored by us is for the cases": (decisions.gives_two_choices, OURS, (TAKEN,), None),
    "n breaks it": (decisions.gives_two_choices, PEER, (answered(500, {}),), "could not tell"),
    "an answer goes on": (decisions.ignores_ends, PEER, pairs("stop", "stop", "stop", "length"), None),
    "ignore_eos ignored by a peer": (decisions.ignores_ends, PEER, pairs("stop", "stop"), "no effect"),
    "nothing ends by itself": (decisions.ignores_ends, PEER, pairs("length", "length"), "could not tell"),
    "ignore_eos refused": (decisions.ignores_ends, PEER, (TAKEN, answered(400, REFUSAL)), "not served"),
    "ignore_eos of ours": (decisions.ignores_ends, OURS, pairs("stop", "stop"), None),
    "a limit kept": (decisions.keeps_a_token_limit, PEER, (counted(1),), None),
    "a limit of which nothing is told": (decisions.keeps_a_token_limit, PEER, (TAKEN,), None),
    "a limit ignored by a peer": (decisions.keeps_a_token_limit, PEER, (counted(9),), "chat.max_tokens"),
    "a limit ignored by us is for the cases": (decisions.keeps_a_token_limit, OURS, (counted(9),), None),
    "a route": (decisions.is_a_route, PEER, (routed("/models", 200, {}), NOWHERE), None),
    "a route that fails": (decisions.is_a_route, PEER, (routed("/models", 500, {}), NOWHERE), "could not tell"),
    "no such route": (decisions.is_a_route, PEER, (routed("/models/x", 404, "no /v1/models/x"), NOWHERE), "no such"),
    "a route that does not find": (decisions.is_a_route, PEER, (routed("/models/x", 404, "no model"), NOWHERE), None),
    "no such route of ours is for the cases": (
        decisions.is_a_route,
        OURS,
        (routed("/models/x", 404, "no /v1/models/x"), NOWHERE),
        None,
    ),
    "metrics of another": (decisions.tells_its_load, PEER, (exchanged(http(200, b"up 1\n")),), "no metrics"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_decision_says_why_not(name: str) -> None:
    decide, site, exchanges, expected = OTHERS[name]
    reason = decide(site, exchanges)
    assert (reason is None) == (expected is None), reason
    assert expected is None or expected in str(reason)
