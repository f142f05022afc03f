"""From an ask to what is sent to one kind of server or another."""

import pytest

from tidegate.conformance.ask import Ask
from tidegate.conformance.wire.fill import Filling, fill
from tidegate.conformance.wire.target import Target

ASK = Ask(body={"model": "{model}", "max_tokens": 9}, script={"pieces": ["31"]}, is_endless=True)
SENT: dict[str, tuple[bool, bool, set[str]]] = {
    "a server that obeys ignore_eos or min_tokens is sent both": (False, True, {"ignore_eos", "min_tokens"}),
    "a server that may refuse what it does not know is not": (False, False, set()),
    "a script ends where it ends": (True, True, {"x_script"}),
}


@pytest.mark.parametrize("name", SENT)
def test_an_endless_ask_is_endless_where_the_server_can(name: str) -> None:
    is_scripted, ignores_eos, added = SENT[name]
    filling = Filling(Target(base_url="http://a/v1", model="m"), "mark", 0, {})
    request = fill(ASK, filling, is_scripted=is_scripted, ignores_eos=ignores_eos)
    assert request.json.keys() - {"model", "max_tokens"} == added
    assert request.json["model"] == "m"


def test_other_asks_stay_as_they_are() -> None:
    filling = Filling(Target(base_url="http://a/v1", model="m"), "mark", 0, {})
    assert fill(Ask(body={"n": 1}), filling, is_scripted=False, ignores_eos=True).json == {"n": 1}
