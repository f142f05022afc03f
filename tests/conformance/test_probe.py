"""Probing a whole server: the order of questions, and what is not asked."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harness.exchanges import answered, exchanged
from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.judge import Evidence
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.probe import MAX_ATTEMPTS, NoServerError, probe
from tidegate.conformance.probing.probe_table import PROBES
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.probing.site import Site
from tidegate.conformance.wire.exchange import Ending, Exchange

ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}
MODELS = {"object": "list", "data": [{"id": "tide-1", "owned_by": "sea"}]}
Answers = Callable[[Ask], Exchange]


class Server:
    """Answers with a function of the ask, and remembers what was asked."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[Ask] = []

    async def __call__(self, ask: Ask, evidence: Evidence) -> Exchange:
        self.asked.append(ask)
        return self.answers(ask)

    def probe(self, model: str = "", **site: Any) -> Probed:
        names: list[str] = []
        found = asyncio.run(probe(self, model, Site(**site), named=lambda name, is_scripted: names.append(name)))
        assert names == [found.model]
        return found


def peer(ask: Ask) -> Exchange:
    """A server of the ordinary kind: chat, nothing else, and unknown fields are ignored."""
    if ask.path == "/models":
        return answered(200, MODELS, server="uvicorn")
    return answered(200, ANSWER) if ask.path == "/chat/completions" else answered(404, {"detail": "Not Found"})


def test_every_capability_has_one_probe() -> None:
    assert sorted(probe.capability.name for probe in PROBES) == sorted(one.name for one in Capability)


def test_what_a_peer_ignores_is_held_against_it_only_where_it_has_no_right_to() -> None:
    found = Server(peer).probe()
    assert found.model == "tide-1"
    assert found.identity == {"server": "uvicorn", "owned_by": "sea"}
    held = {Capability.SEED, Capability.LOGPROBS, Capability.JSON_SCHEMA, Capability.FORCED_TOOLS}
    ignored = {
        Capability.STRUCTURED_OUTPUTS,
        Capability.IDEMPOTENCY,
        Capability.DEADLINES,
        Capability.MODEL_CHECK,
        Capability.CHOICES,
    }
    assert held <= found.capabilities
    assert ignored <= set(found.absent)
    assert not found.has_contract
    assert not found.is_scripted


def test_capabilities_and_reasons_add_up() -> None:
    found = Server(peer).probe()
    assert found.capabilities | set(found.absent) == set(Capability)
    assert not found.capabilities & set(found.absent)
    assert all(found.absent.values())


def test_nothing_that_needs_chat_is_asked_of_a_server_without() -> None:
    server = Server(lambda ask: answered(200, MODELS) if ask.path == "/models" else answered(404, {}))
    found = server.probe()
    assert "chat completions: the server answers 404" in found.absent[Capability.TOOLS]
    assert sum(ask.path == "/chat/completions" for ask in server.asked) == 1
    assert not any(ask.place is Place.ADMIN for ask in server.asked)


def test_a_server_without_a_list_of_models_is_asked_for_the_one_that_was_given() -> None:
    server = Server(lambda ask: answered(404, {}) if ask.path == "/models" else answered(200, ANSWER))
    assert server.probe("mine").model == "mine"
    with pytest.raises(NoServerError, match="--model"):
        Server(lambda ask: answered(404, {})).probe()


def test_a_server_that_wants_a_key_first_says_so() -> None:
    with pytest.raises(NoServerError, match="--api-key"):
        Server(lambda ask: answered(401, {})).probe()


def test_no_server_is_an_error_that_says_what_was_tried() -> None:
    with pytest.raises(NoServerError, match=r"no connection could be made"):
        Server(lambda ask: exchanged(ending=Ending.NO_CONNECTION)).probe("mine")


WEIRD: dict[str, Any] = {
    "a list": [1, 2],
    "text": "text",
    "endpoints that are a number": {"object": "contract", "models": [{"endpoints": 7}]},
    "choices that are text": {"object": "list", "data": [{"id": "a"}], "choices": "none"},
    "an error that is a list": {"error": [1]},
}


@pytest.mark.parametrize("name", WEIRD)
@pytest.mark.parametrize("status", [200, 400, 404, 503])
def test_no_answer_is_too_odd_for_the_probes(name: str, status: int) -> None:
    headers = {"retry_after": "0"}
    found = Server(lambda ask: answered(status, WEIRD[name], **headers)).probe("mine", has_admin_url=True, has_key=True)
    assert found.capabilities | set(found.absent) == set(Capability)


def test_a_busy_server_is_asked_again() -> None:
    seen: list[str] = []

    def answers(ask: Ask) -> Exchange:
        if ask.path == "/chat/completions" and len(seen) < 2:
            seen.append(ask.path)
            return answered(503, {}, retry_after="0")
        return peer(ask)

    assert Capability.CHAT in Server(answers).probe().capabilities
    assert len(seen) == 2


def test_our_contract_is_believed_from_the_header_alone() -> None:
    found = Server(lambda ask: answered(200, MODELS | ANSWER, tidegate_contract="1.0")).probe()
    assert found.has_contract
    assert {Capability.IDEMPOTENCY, Capability.DEADLINES, Capability.CONTRACT} <= found.capabilities
    assert found.identity["contract"] == "1.0"


def test_a_server_that_stays_busy_is_not_asked_forever() -> None:
    server = Server(lambda ask: answered(503, {}, retry_after="0") if "chat" in str(ask.path) else peer(ask))
    found = server.probe()
    assert "could not tell" in found.absent[Capability.CHAT]
    assert sum(ask.path == "/chat/completions" for ask in server.asked) == MAX_ATTEMPTS
