"""What breaks the reading of requests with tools: offers, choices, earlier turns, other kinds of tools."""

from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsChunks, Heard, Said
from mutants.answers import (
    NAMES_NOTHING,
    ONE_CODE,
    REFUSES_INSIDE,
    edits_calls,
    edits_choice,
    edits_deltas,
    edits_fragments,
    says_of_errors,
)
from mutants.tools import KNOWS_NO_TOOLS

_BODY = b'{"error": {"message": "Bad request.", "type": "invalid_request_error", "param": null, "code": null}}'


def _refuses(says: str, is_odd: Callable[[Any], bool]) -> Answers:
    """A server that answers 400 to a request of which some message is odd to it."""

    def answer(heard: Heard) -> Said | None:
        messages = (heard.json or {}).get("messages", ())
        return Said(400, _BODY) if any(is_odd(message) for message in messages) else None

    return Answers(says, answer)


def _has_calls(message: Any) -> bool:
    return bool(message.get("tool_calls"))


_READS_ANY_TURN = Answers(
    "takes results of anything",
    lambda heard: Said(200, b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hm."}}]}'),
)
_KNOWS_NO_CALLS = _refuses("knows no tool calls in messages", _has_calls)
_NEEDS_TEXT = _refuses("wants text beside tool calls", lambda m: _has_calls(m) and not m.get("content"))
_WANTS_ONE_RESULT = _refuses("knows one call only in a turn", lambda m: len(m.get("tool_calls") or ()) > 1)
_WANTS_PLAIN_RESULTS = _refuses(
    "takes results as plain text only", lambda m: m["role"] == "tool" and isinstance(m.get("content"), list)
)
_BROKEN_OFFERS = (
    "name_characters",
    "name_length",
    "name_missing",
    "function_missing",
    "type_unknown",
    "parameters_not_object",
    "tools_not_list",
    "choice_unknown_word",
    "choice_not_offered",
    "required_without_tools",
)
_EXACT_OFFERS = (
    "name",
    "name_length",
    "twins",
    "parameters",
    "choice",
    "required_without_tools",
    "schema",
    "unenforced",
    "mixed",
    "result_without_id",
    "turn_without_anything",
)


def _drop_call(choice: dict[str, Any]) -> None:
    choice["message"].pop("function_call", None)


def _lengthen(fragment: dict[str, Any]) -> None:
    if fragment["custom"].get("input"):
        fragment["custom"]["input"] += "1"


def _as_function(calls: list[Any]) -> None:
    calls[0] = calls[0] | {"type": "function", "function": calls[0].pop("custom")}


_WRONG_INPUT = edits_calls("holds custom input to nothing", lambda calls: calls[0]["custom"].update(input="abcd-1"))


def _edits_legacy(says: str, edit: Callable[[dict[str, Any]], object]) -> EditsChunks:
    """A mutant that changes each `function_call` in the deltas of a stream."""

    def apply(delta: dict[str, Any]) -> None:
        if "function_call" in delta:
            edit(delta["function_call"])

    return edits_deltas(says, apply)


def _tells_as_tool_call(delta: dict[str, Any]) -> None:
    if (call := delta.pop("function_call", None)) is not None:
        delta["tool_calls"] = [{"index": 0, "function": call}]


MUTANTS: Mutants = {
    **{f"tools.refuses_{name}": (KNOWS_NO_TOOLS,) for name in _BROKEN_OFFERS},
    **{f"tools.exact_{name}": (NAMES_NOTHING, ONE_CODE) for name in _EXACT_OFFERS},
    "tools.refuses_before_streaming": (REFUSES_INSIDE,),
    "tools.exact_count": (says_of_errors("names no limit", limit=None), KNOWS_NO_TOOLS),
    "tools.empty_list_is_none": (
        Answers("refuses an empty list", lambda heard: Said(400, _BODY) if heard.json["tools"] == [] else None),
    ),
    "tools.round_trip": (_KNOWS_NO_CALLS,),
    "tools.history_null_content": (_NEEDS_TEXT,),
    "tools.history_no_content": (_NEEDS_TEXT,),
    "tools.history_text_beside": (_KNOWS_NO_CALLS,),
    "tools.history_parts": (_WANTS_PLAIN_RESULTS,),
    "tools.history_two_results": (_WANTS_ONE_RESULT,),
    "tools.refuses_result_without_id": (_READS_ANY_TURN,),
    "tools.custom_regex": (_WRONG_INPUT, edits_calls("tells custom calls as functions", _as_function)),
    "tools.custom_lark": (_WRONG_INPUT,),
    "tools.custom_streamed": (edits_fragments("streams custom input that nothing holds", _lengthen),),
    "tools.legacy_functions": (KNOWS_NO_TOOLS, edits_choice("loses the function call", _drop_call)),
    "tools.streamed_legacy_functions": (
        edits_deltas("tells the function call as a call of a tool", _tells_as_tool_call),
        _edits_legacy("tells the name in each fragment", lambda call: call.update(name="pick_colour")),
        _edits_legacy("loses the name", lambda call: call.pop("name", None)),
        _edits_legacy(
            "loses quotes of arguments", lambda call: call.update(arguments=call["arguments"].replace('"', ""))
        ),
    ),
}
