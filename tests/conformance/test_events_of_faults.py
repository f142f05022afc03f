"""The event that a fault names is the one that shows it, whatever else the stream holds: all checks that name one."""

import ast
import contextlib
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness.made_report import make_exchange, stream
from tidegate.conformance.case import Check
from tidegate.conformance.catalog import CASES
from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange

EXPECTS = {expectation.check: expectation for case in CASES for expectation in case.expects}
"""One of each check: what else its arguments may be does not change which event it names."""


def _chunk(choices: list[Any], **members: Any) -> dict[str, Any]:
    return {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **members}


def _of_choice(delta: Any, finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None} | members


def _call(**members: Any) -> dict[str, Any]:
    return _chunk([_of_choice({"tool_calls": [members]})])


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
OPENING = _chunk([_of_choice({"role": "assistant", "content": ""})])
FINISH = _chunk([_of_choice({}, "stop")])
ENTRY = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
WRONG = {
    "ids that change": [OPENING, _chunk([_of_choice({"content": "a"})], id="b", created=2, model="n"), FINISH],
    "no role": [_chunk([_of_choice({"content": "a"})]), FINISH],
    "a role told twice": [OPENING, OPENING, FINISH],
    "text after the end": [OPENING, FINISH, _chunk([_of_choice({"content": "a"})])],
    "an end with text": [OPENING, _chunk([_of_choice({"content": "a"}, "stop")])],
    "usage in the middle": [OPENING, _chunk([], usage=USAGE), FINISH],
    "usage that falls": [
        _chunk([_of_choice({"content": "a"})], usage=USAGE),
        _chunk([_of_choice({"content": "b"})], usage=USAGE | {"completion_tokens": 1, "total_tokens": 4}),
    ],
    "an entry that is late": [
        OPENING,
        _chunk([_of_choice({"content": "ab"}, logprobs={"content": [ENTRY]})]),
        _chunk([_of_choice({"content": "c"}, "stop", logprobs={"content": [ENTRY]})]),
    ],
    "nothing said": [OPENING, _chunk([_of_choice({})]), FINISH],
    "half a character": [
        OPENING,
        _chunk([_of_choice({"content": "a\ufffd"})]),
        _chunk([_of_choice({"content": "b"}, "stop")]),
    ],
    "an error without a type": [OPENING, {"error": {"message": "it failed"}}],
    "an error after the end": [FINISH, {"error": {"message": "it failed", "type": "server_error", "code": 1}}],
    "members of other types": [_chunk("none", id=7, created="now", object=None), _chunk([7]), FINISH],
    "members of a completion": [
        {"id": "a", "object": "text_completion", "created": 1, "model": "m", "choices": [{"index": "0", "text": 7}]}
    ],
    "a call that begins without a name": [OPENING, _call(index=0, function={"arguments": "{"}), FINISH],
    "a call named twice": [
        OPENING,
        _call(index=0, id="c", type="function", function={"name": "f", "arguments": ""}),
        _call(index=0, id="c", function={"name": "f", "arguments": "{}"}),
        FINISH,
    ],
    "calls out of order": [
        OPENING,
        _call(index=1, id="c", type="function", function={"name": "f", "arguments": "{}"}),
        _call(id="d", type="function", function={"name": "f", "arguments": "{}"}),
        FINISH,
    ],
    "reasoning after text": [
        OPENING,
        _chunk([_of_choice({"reasoning_content": "so"})]),
        _chunk([_of_choice({"content": "a"})]),
        _chunk([_of_choice({"reasoning_content": "hm"})]),
        FINISH,
    ],
}
DONE = "[DONE]"
ELSEWHERE = {"beats_while_silent"}
"""Needs the contract page and a silence: tests/conformance/test_heartbeat_check.py."""


def _exchange(texts: list[str]) -> Exchange:
    request = {"model": "asked", "stream": True, "stream_options": {"include_usage": True}}
    pieces = stream([(0.01 * (number + 1), text) for number, text in enumerate(texts)])
    head = pieces[0][1].replace(b"\r\n\r\n", b"\r\nTidegate-Served-Revision: r1\r\n\r\n")
    return make_exchange([(pieces[0][0], head), *pieces[1:]], request, request_json=request)


def _found(check: Check, num_exchanges: int, args: Any, texts: list[str], *, is_over: bool) -> list[Fault]:
    exchange = _exchange(texts)
    faults: list[Fault] = []
    with contextlib.suppress(Exception):  # checks rely on what the ask of their case sent, which is not sent here
        faults.extend(check((exchange,), **args) if is_over else check(*[exchange] * num_exchanges, **args))
    return faults


def _pairs() -> Iterator[tuple[str, str, list[Fault], list[Fault]]]:
    """Yields what each check says to each wrong stream, and to the same stream with `[DONE]` before all of it."""
    for expectation in EXPECTS.values():
        for name, chunks in WRONG.items():
            texts = [json.dumps(chunk) for chunk in chunks]
            both = [
                _found(expectation.check, len(expectation.on), expectation.args, said, is_over=expectation.over_copies)
                for said in ([*texts, DONE], [DONE, *texts])
            ]
            yield expectation.check.__name__, name, both[0], both[1]


@pytest.fixture(scope="module")
def said() -> list[tuple[str, str, list[Fault], list[Fault]]]:
    return list(_pairs())


def _words(fault: Fault) -> str:
    return re.sub(r"\d+", "N", fault.says)


def test_events_are_counted_with_done_among_them(said: list[tuple[str, str, list[Fault], list[Fault]]]) -> None:
    for check, name, plain, shifted in said:
        if check == "is_done_once_and_last":
            continue
        events = [(_words(fault), fault.event + 1) for fault in plain if fault.event is not None]
        moved = [(_words(fault), fault.event) for fault in shifted if fault.event is not None]
        assert moved == events, (check, name)
        assert all(0 <= event - 1 < len(WRONG[name]) for _, event in events), (check, name)


def _names_an_event(check: Check) -> bool:
    calls = (node for node in ast.walk(ast.parse(inspect.getsource(check))) if isinstance(node, ast.Call))
    faults = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Fault")
    return any(len(call.args) > 1 or any(word.arg == "event" for word in call.keywords) for call in faults)


def test_every_check_that_can_name_an_event_was_seen_to(
    said: list[tuple[str, str, list[Fault], list[Fault]]],
) -> None:
    can = {check.__name__ for check in EXPECTS if _names_an_event(check)}
    seen = {name for name, _, plain, shifted in said if any(fault.event is not None for fault in [*plain, *shifted])}
    assert len(can) > 15
    assert can - seen == ELSEWHERE


def test_a_whole_answer_has_no_event() -> None:
    whole = make_exchange([(0.01, b"HTTP/1.1 200 OK\r\nTidegate-Served-Revision: r1\r\nContent-Length: 2\r\n\r\n{}")])
    check = next(check for check in EXPECTS if check.__name__ == "serves_told_revision")
    assert [fault.event for fault in check(whole)] == [None]
