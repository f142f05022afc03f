"""What breaks calls of tools in streams."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, Heard, Mutant
from mutants.answers import edits_deltas, edits_fragments, stream_ends_with
from mutants.tools import ALLOWS_SEVERAL, KNOWS_NO_TOOLS, TAKES_NONE_FOR_AUTO


def _arguments(chunk: Any) -> list[dict[str, Any]]:
    return [call["function"] for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]


def _name_again(fragment: dict[str, Any]) -> None:
    fragment["function"].setdefault("name", "pick_colour")


class _RepeatsArguments(Mutant):
    says = "sends the whole arguments again at the end"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for function in _arguments(chunk):
            heard.notes["sent"] = heard.notes.get("sent", "") + function["arguments"]
        if any(choice["finish_reason"] for choice in chunk["choices"]):
            again = {"index": 0, "function": {"arguments": heard.notes["sent"]}}
            choice = {"index": 0, "delta": {"tool_calls": [again]}, "finish_reason": None}
            yield chunk | {"choices": [choice]}
        yield chunk


class _LosesFragment(Mutant):
    says = "loses the first characters of arguments"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for function in _arguments(chunk):
            if function["arguments"] and not heard.notes.get("is_lost"):
                heard.notes["is_lost"] = True
                function["arguments"] = ""
        yield chunk


class _WritesAnotherValue(Mutant):
    says = "streams another value than it answers whole"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for function in _arguments(chunk):
            function["arguments"] = function["arguments"].replace("e", "E")
        yield chunk


class _WritesAnew(Mutant):
    says = "writes the arguments of streams anew, without blanks"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        for function in _arguments(chunk):
            function["arguments"] = function["arguments"].replace(" ", "")
        yield chunk


def _without_calls(chunk: Any, position: int) -> Iterator[Any]:
    for choice in chunk["choices"]:
        calls = choice["delta"].pop("tool_calls", None)
        if calls:
            choice["delta"]["content"] = json.dumps(calls)
        if choice["finish_reason"]:
            choice["finish_reason"] = "stop"
    yield chunk


def _leak(delta: dict[str, Any]) -> None:
    if "tool_calls" in delta:
        delta["content"] = "<tool_call>"


def _double_text(delta: dict[str, Any]) -> None:
    if delta.get("content"):
        delta["content"] *= 2


def _open_full(fragment: dict[str, Any]) -> None:
    if "id" in fragment:
        fragment["function"].pop("arguments")


_TOOL_USE = stream_ends_with("says tool_use in streams", "tool_use")

MUTANTS: Mutants = {
    "tools.streamed_required_calls": (EditsChunks("streams calls as text", _without_calls), KNOWS_NO_TOOLS),
    "tools.streamed_first_fragment": (
        edits_fragments("sends no id", lambda fragment: fragment.pop("id", None)),
        edits_fragments("sends no type", lambda fragment: fragment.pop("type", None)),
        edits_fragments("repeats the name in every fragment", _name_again),
        edits_fragments("repeats an id in every fragment", lambda fragment: fragment.setdefault("id", "call_1")),
    ),
    "tools.streamed_indices": (
        edits_fragments("sends no index", lambda fragment: fragment.pop("index")),
        edits_fragments("counts calls from 1", lambda fragment: fragment.update(index=fragment["index"] + 1)),
        edits_fragments("leaves numbers out", lambda fragment: fragment.update(index=fragment["index"] * 2)),
    ),
    "tools.streamed_two_ids": (
        edits_fragments("has one id for all calls", lambda fragment: fragment.update(id="call_0")),
    ),
    "tools.streamed_arguments_once": (_RepeatsArguments(), _LosesFragment()),
    "tools.streamed_equals_whole": (_WritesAnotherValue(), _LosesFragment()),
    "tools.streamed_characters": (_WritesAnew(), edits_deltas("sends text twice", _double_text)),
    "tools.streamed_opening": (
        edits_fragments("opens a call without arguments", _open_full),
        edits_fragments("repeats the type in every fragment", lambda fragment: fragment.update(type="function")),
    ),
    "tools.streamed_finish": (stream_ends_with("ends streamed calls with stop", "stop"), _TOOL_USE),
    "tools.streamed_forced_finish": (_TOOL_USE,),
    "tools.streamed_none": (TAKES_NONE_FOR_AUTO,),
    "tools.streamed_one_call_at_a_time": (ALLOWS_SEVERAL,),
    "tools.streamed_content_holds_no_call": (edits_deltas("lets markup through before a call", _leak),),
    "tools.streamed_cut_says_length": (stream_ends_with("says tool_calls after a cut", "tool_calls"),),
}
