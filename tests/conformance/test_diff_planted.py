"""Regressions planted in a right server are found and called so; two runs of the same build differ in nothing."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from harness.compared import compared
from harness.judged_case import RightServer, RightServers, mutated
from harness.mutant import (
    AddsAfterStream,
    Answers,
    EditsChunks,
    EditsErrors,
    EditsFrames,
    EditsHead,
    EditsRequest,
    EditsValue,
    Heard,
    Ignores,
    Mutant,
    Said,
    frame_of,
)
from tidegate.conformance.diff.declared import read_changes
from tidegate.conformance.diff.difference import Aspect, Meaning

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def right() -> Iterator[RightServer]:
    with RightServers() as running:
        yield running.of("scripted")


def _in_usage(name: str, add: int) -> Callable[[Any], Any]:
    def edit(value: Any) -> Any:
        if isinstance(value.get("usage"), dict):
            value["usage"][name] += add
        return value

    return edit


def _without(value: Any, name: str) -> Any:
    return {key: part for key, part in value.items() if key != name}


def _ends_well(value: Any) -> Any:
    for choice in value.get("choices", ()):
        if choice["finish_reason"] == "length":
            choice["finish_reason"] = "stop"
    return value


def _without_usage(chunk: Any, position: int) -> Iterable[Any]:
    del position
    return [] if chunk.get("choices") == [] else [chunk]


def _without_done(data: str, position: int) -> Iterable[bytes]:
    del position
    return [] if data == "[DONE]" else frame_of(data)


def _unprocessable(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    del heard
    return (422 if status == 404 else status), headers


def _plain(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    del heard
    return status, {name: "text/plain" if name == "content-type" else value for name, value in headers.items()}


def _without_contract(heard: Heard, status: int, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    del heard
    return status, _without(headers, "tidegate-contract")


def _number_code(value: Any) -> Any:
    value["error"]["code"] = 400
    return value


def _no_streams(heard: Heard) -> Said | None:
    return (
        Said(501, b'{"error": {"message": "no streams", "type": "x", "param": null, "code": null}}')
        if heard.is_stream
        else None
    )


def _shifted(value: Any) -> Any:
    for choice in value.get("choices", ()):
        for entry in (choice.get("logprobs") or {}).get("content") or ():
            entry["logprob"] -= 0.7
    return value


PLANTED: list[tuple[Mutant, str, Aspect]] = [
    (EditsHead("another status", _unprocessable), "routes.unknown", Aspect.STATUS),
    (EditsErrors("a number as code", _number_code), "models.unknown", Aspect.ERROR),
    (EditsHead("another content type", _plain), "chat.object", Aspect.CONTENT_TYPE),
    (EditsHead("a header gone", _without_contract), "chat.object", Aspect.HEADER),
    (EditsValue("a member gone", lambda value: _without(value, "created")), "chat.object", Aspect.SHAPE),
    (EditsChunks("no usage chunk", _without_usage), "stream.usage_last", Aspect.GRAMMAR),
    (EditsFrames("no [DONE]", _without_done), "stream.done", Aspect.GRAMMAR),
    (EditsValue("other prompt tokens", _in_usage("prompt_tokens", 1)), "chat.object", Aspect.PROMPT_TOKENS),
    (EditsValue("other completion tokens", _in_usage("completion_tokens", 1)), "chat.object", Aspect.COMPLETION_TOKENS),
    (EditsValue("another end", _ends_well), "chat.max_tokens", Aspect.FINISH),
    (Ignores(("max_tokens",)), "chat.max_tokens", Aspect.VERDICT),
    (AddsAfterStream("more after the end", b": ping\r\n"), "stream.*", Aspect.FRAMING),
    (Answers("streams refused", _no_streams), "stream.done", Aspect.STATUS),
    (EditsValue("other log-probabilities", _shifted), "logprobs.*", Aspect.LOGPROBS),
]


@pytest.mark.parametrize(("mutant", "pattern", "aspect"), PLANTED, ids=[mutant.says for mutant, _, _ in PLANTED])
def test_a_planted_regression_is_found(right: RightServer, mutant: Mutant, pattern: str, aspect: Aspect) -> None:
    with mutated(right, mutant) as broken:
        comparison = compared(right, broken, [pattern])
    found = [difference.aspect for difference in comparison.of(Meaning.REGRESSION)]
    assert aspect in found, comparison.differences


def test_a_lost_message_is_found_by_the_bill(right: RightServer) -> None:
    def forget(body: Any) -> Any:
        return body | {"messages": body["messages"][-1:]} if "messages" in body else body

    with mutated(right, EditsRequest("forgets the system message", forget)) as broken:
        comparison = compared(right, broken, ["chat.system_read"])
    assert Aspect.PROMPT_TOKENS in [difference.aspect for difference in comparison.of(Meaning.REGRESSION)]


def test_two_runs_of_one_build_differ_in_nothing_that_matters(right: RightServer) -> None:
    comparison = compared(right, right, ["chat.*", "completions.*", "stream.*", "routes.*", "models.*", "stop.*"])
    assert [d for d in comparison.differences if d.meaning is not Meaning.VARIATION] == []
    assert comparison.num_cases >= 50


def test_a_declared_change_is_no_regression_and_an_unseen_one_is_named(right: RightServer) -> None:
    changes = read_changes(
        """
        [[change]]
        case = "routes.*"
        aspect = "status"
        old = "404"
        new = "422"
        reason = "the new router says so"

        [[change]]
        case = "models.*"
        aspect = "header"
        reason = "not there"
        """
    )
    with mutated(right, EditsHead("another status", _unprocessable)) as broken:
        comparison = compared(right, broken, ["routes.unknown"], changes)
    statuses = [d for d in comparison.differences if d.aspect is Aspect.STATUS]
    assert statuses
    assert {d.meaning for d in statuses} == {Meaning.INTENDED}
    assert {d.because for d in statuses} == {"the new router says so"}
    assert [change.reason for change in comparison.unseen] == ["not there"]
